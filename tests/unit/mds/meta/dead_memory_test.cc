// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/dead_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>
#include <vector>

#include "server/mds/meta/extents.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds::dead_memory_test {
namespace {

constexpr uint64_t kG = kGrainSize;

class DeadMemoryTest : public OverBothEngines {
 protected:
  void put(const DeadRun& run) {
    Batch batch;
    DeadMemory::put(batch, run);
    ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  }
  void commit(const Revival& revival) {
    Batch batch;
    revival.write_to(batch);
    ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  }
  std::vector<DeadRun> all() { return *DeadMemory(*store_).page(0); }
};

PNFSRDMA_OVER_BOTH_ENGINES(DeadMemoryTest);

TEST_P(DeadMemoryTest, IsFoundByAddressInPages) {
  put({{8 * kG, 2 * kG}, 1, 5});
  put({{2 * kG, kG}, 0, 9});
  put({{4 * kG, 4 * kG}, 3, 4});
  const std::vector<DeadRun> sorted{{{2 * kG, kG}, 0, 9}, {{4 * kG, 4 * kG}, 3, 4}, {{8 * kG, 2 * kG}, 1, 5}};
  EXPECT_EQ(all(), sorted);
  DeadMemory dead(*store_);
  EXPECT_EQ(dead.page(0, 1)->front(), sorted[0]);
  EXPECT_EQ(dead.page(3 * kG, 1)->front(), sorted[1]);
  EXPECT_EQ(dead.page(8 * kG, 1)->front(), sorted[2]);
  EXPECT_TRUE(dead.page(10 * kG)->empty());
  EXPECT_EQ(dead.overlapping({3 * kG, 2 * kG})->size(), 1U);
  EXPECT_EQ(dead.overlapping({7 * kG, 2 * kG})->size(), 2U);
  EXPECT_TRUE(dead.overlapping({3 * kG, kG})->empty());
  EXPECT_EQ(*dead.bytes(), 7 * kG);
}

TEST_P(DeadMemoryTest, APartThatComesBackLeavesBothRestsOnRecord) {
  put({{4 * kG, 8 * kG}, 1, 3});
  Revival revival(*store_);
  EXPECT_TRUE(revival.take({6 * kG, 2 * kG})->empty());
  EXPECT_EQ(revival.bytes(), 2 * kG);
  commit(revival);
  EXPECT_EQ(all(), (std::vector<DeadRun>{{{4 * kG, 2 * kG}, 1, 3}, {{8 * kG, 4 * kG}, 1, 3}}));
}

TEST_P(DeadMemoryTest, WhatIsAliveIsTold) {
  put({{4 * kG, 2 * kG}, 1, 3});
  put({{8 * kG, 2 * kG}, 1, 4});
  Revival revival(*store_);
  EXPECT_EQ(*revival.take({3 * kG, 6 * kG}), (std::vector<LogicalRange>{{3 * kG, kG}, {6 * kG, 2 * kG}}));
  EXPECT_EQ(revival.bytes(), 3 * kG);
  // Named again by the same file: that is alive by now.
  EXPECT_EQ(*revival.take({4 * kG, 2 * kG}), (std::vector<LogicalRange>{{4 * kG, 2 * kG}}));
  commit(revival);
  EXPECT_EQ(all(), (std::vector<DeadRun>{{{9 * kG, kG}, 1, 4}}));
}

TEST_P(DeadMemoryTest, TooManyPiecesAreRefused) {
  Batch batch;
  for (uint64_t i = 0; i < Revival::kRecordsMax + 10; ++i) DeadMemory::put(batch, {{2 * i * kG, kG}, 0, 1});
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  Revival revival(*store_);
  const auto taken = revival.take({0, 4 * Revival::kRecordsMax * kG});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().number(), EFBIG);
}

// Whether the records are read at once or one by one.
TEST_P(DeadMemoryTest, AnyTakingIsThatOfItsModel) {
  std::mt19937 random(3);  // NOLINT: a test that repeats
  constexpr uint64_t kGrains = 64;
  std::map<uint64_t, DeadRun> dead;  // by grain
  for (int round = 0; round < 300; ++round) {
    for (uint64_t at = 0; at < kGrains;) {
      const uint64_t count = std::min<uint64_t>(1 + random() % 5, kGrains - at);
      bool free = random() % 2 == 0;
      for (uint64_t i = at; i < at + count; ++i) free = free && !dead.contains(i);
      const auto died = static_cast<SnapshotNumber>(2 + random() % 3);
      if (free) put({{at * kG, count * kG}, 1, died});
      for (uint64_t i = at; free && i < at + count; ++i) dead[i] = {{i * kG, kG}, 1, died};
      at += count;
    }
    std::vector<LogicalRange> asked;
    for (uint64_t i = 0; i < 1 + random() % 6; ++i) {
      const uint64_t begin = random() % kGrains;
      asked.push_back({begin * kG, (1 + random() % (kGrains - begin)) * kG});
    }
    Revival revival(*store_);
    if (random() % 2 == 0) ASSERT_TRUE(revival.prepare(asked));
    uint64_t bytes = 0;
    for (const LogicalRange& part : asked) {
      std::map<uint64_t, bool> alive;
      const auto parts = revival.take(part);
      ASSERT_TRUE(parts);
      for (const LogicalRange& told : *parts) {
        for (uint64_t at = told.logical; at < told.end(); at += kG) alive[at / kG] = true;
      }
      for (uint64_t at = part.logical / kG; at < part.end() / kG; ++at) {
        EXPECT_EQ(alive.contains(at), !dead.contains(at));
        bytes += dead.erase(at) * kG;
      }
    }
    EXPECT_EQ(revival.bytes(), bytes);
    commit(revival);
    std::map<uint64_t, DeadRun> found;
    for (const DeadRun& run : all()) {
      for (uint64_t at = run.memory.logical; at < run.memory.end(); at += kG)
        EXPECT_TRUE(found.emplace(at / kG, DeadRun{{at, kG}, run.born, run.died}).second);
    }
    ASSERT_EQ(found, dead);
  }
}

}  // namespace
}  // namespace pnfsrdma::mds::dead_memory_test
