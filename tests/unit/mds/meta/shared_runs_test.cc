// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/shared_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>

#include "server/mds/meta/extents.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

constexpr uint64_t kGrain = kGrainSize;

LogicalRange grains(uint64_t first, uint64_t count) {
  return {first * kGrain, count * kGrain};
}
SharedRun run(uint64_t first, uint64_t count, uint64_t names) {
  return {first * kGrain, count * kGrain, names};
}

class Sharing : public OverBothEngines {
 protected:
  void commit(const SharedChange& change) {
    Batch batch;
    change.write_to(batch);
    ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  }
  void add(uint64_t first, uint64_t count) {
    SharedChange change(*store_);
    ASSERT_TRUE(change.add(grains(first, count)));
    commit(change);
  }
  std::vector<LogicalRange> drop(uint64_t first, uint64_t count) {
    SharedChange change(*store_);
    const auto unnamed = change.drop(grains(first, count));
    commit(change);
    return unnamed.value();
  }
  std::vector<SharedRun> all() { return SharedRuns(*store_).overlapping({0, UINT64_MAX / 2}).value(); }
};

TEST_P(Sharing, WhatNobodySharesHasNoRecordAndIsFreeWhenItIsDropped) {
  EXPECT_TRUE(all().empty());
  EXPECT_EQ(drop(3, 4), (std::vector{grains(3, 4)}));
  EXPECT_TRUE(all().empty());
}

TEST_P(Sharing, TheLastOfSeveralNamesFreesTheMemory) {
  add(10, 5);
  add(10, 5);
  EXPECT_EQ(all(), (std::vector{run(10, 5, 3)}));
  EXPECT_TRUE(drop(10, 5).empty());
  EXPECT_TRUE(drop(10, 5).empty());
  EXPECT_TRUE(all().empty());
  EXPECT_EQ(drop(10, 5), (std::vector{grains(10, 5)}));
}

TEST_P(Sharing, RunsAreCutWhereTheNumberOfNamesChangesAndJoinedWhereItDoesNot) {
  add(10, 10);
  add(12, 3);
  EXPECT_EQ(all(), (std::vector{run(10, 2, 2), run(12, 3, 3), run(15, 5, 2)}));
  EXPECT_EQ(SharedRuns(*store_).within(grains(11, 30)).value(), (std::vector{grains(11, 9)}));
  EXPECT_TRUE(drop(12, 3).empty());
  EXPECT_EQ(all(), (std::vector{run(10, 10, 2)}));
  add(20, 1);
  EXPECT_EQ(all(), (std::vector{run(10, 11, 2)}));
  EXPECT_TRUE(drop(15, 1).empty());
  EXPECT_EQ(all(), (std::vector{run(10, 5, 2), run(16, 5, 2)}));
}

TEST_P(Sharing, APartThatIsSharedIsKeptOfWhatIsDropped) {
  add(12, 3);
  EXPECT_EQ(drop(10, 10), (std::vector{grains(10, 2), grains(15, 5)}));
  EXPECT_TRUE(all().empty());
}

TEST_P(Sharing, OneChangeSeesItself) {
  SharedChange change(*store_);
  ASSERT_TRUE(change.add(grains(1, 4)));
  ASSERT_TRUE(change.add(grains(3, 4)));
  EXPECT_TRUE(change.drop(grains(3, 2))->empty());
  EXPECT_EQ(change.drop(grains(0, 1)).value(), (std::vector{grains(0, 1)}));
  commit(change);
  EXPECT_EQ(all(), (std::vector{run(1, 6, 2)}));
}

TEST_P(Sharing, IsWhatCountingEachGrainFinds) {
  std::mt19937 dice(7);
  constexpr uint64_t kGrains = 40;
  std::vector<uint64_t> names(kGrains, 1);
  for (int round = 0; round < 1000; ++round) {
    SharedChange change(*store_);
    for (int i = 0; i < 3; ++i) {
      const uint64_t first = dice() % kGrains;
      const uint64_t count = 1 + dice() % (kGrains - first);
      const auto part = std::span(names).subspan(first, count);
      if (dice() % 2 == 0) {
        ASSERT_TRUE(change.add(grains(first, count)));
        for (uint64_t& number : part) ++number;
      } else if (std::ranges::all_of(part, [](uint64_t number) { return number > 0; })) {
        uint64_t freed = 0;
        const auto dropped = change.drop(grains(first, count)).value();
        for (const LogicalRange& range : dropped) freed += range.length / kGrain;
        for (uint64_t& number : part) freed -= --number == 0 ? 1 : 0;
        ASSERT_EQ(freed, 0u);
        // Somebody else gets it.
        for (uint64_t& number : part) number = std::max<uint64_t>(number, 1);
      }
    }
    commit(change);
    std::vector<uint64_t> found(kGrains, 1);
    uint64_t end = 0;
    uint64_t last = 0;
    for (const SharedRun& shared : all()) {
      ASSERT_GE(shared.logical, end);
      ASSERT_FALSE(shared.logical == end && shared.names == last) << "two runs that are one";
      end = shared.end();
      last = shared.names;
      for (uint64_t at = shared.logical; at < end; at += kGrain) found[at / kGrain] = shared.names;
    }
    ASSERT_EQ(found, names) << "round " << round;
  }
}

// A file that has the same memory twice, and somebody else a part of it.
TEST_P(Sharing, SeveralAtOnceMayOverlap) {
  add(128, 64);
  add(16, 16);
  SharedChange change(*store_);
  const std::vector<LogicalRange> memory{grains(0, 256), grains(16, 16)};
  ASSERT_TRUE(change.prepare(memory));
  ASSERT_TRUE(change.add_all(memory));
  commit(change);
  EXPECT_EQ(all(),
            (std::vector{run(0, 16, 2), run(16, 16, 4), run(32, 96, 2), run(128, 64, 3), run(192, 64, 2)}));
}

TEST_P(Sharing, WithWhatIsAtHandTheSameComesOut) {
  std::mt19937 dice(8);
  constexpr uint64_t kGrains = 60;
  std::vector<uint64_t> names(kGrains, 1);
  for (int round = 0; round < 400; ++round) {
    const auto some = [&] {
      std::vector<LogicalRange> ranges;
      for (uint64_t i = 1 + dice() % 4; i > 0; --i) {
        const uint64_t first = dice() % kGrains;
        ranges.push_back(grains(first, 1 + dice() % (kGrains - first)));
      }
      return ranges;
    };
    const std::vector<LogicalRange> added = some();
    std::vector<LogicalRange> dropped;
    for (const LogicalRange& range : some()) {
      const auto part = std::span(names).subspan(range.logical / kGrain, range.length / kGrain);
      if (std::ranges::all_of(part, [](uint64_t number) { return number > 4; })) dropped.push_back(range);
    }
    std::vector<LogicalRange> both = added;
    both.insert(both.end(), dropped.begin(), dropped.end());
    SharedChange change(*store_);
    ASSERT_TRUE(change.prepare(both));
    ASSERT_TRUE(change.add_all(added));
    for (const LogicalRange& range : dropped) ASSERT_TRUE(change.drop(range)->empty());
    commit(change);
    for (const LogicalRange& range : added) {
      for (uint64_t at = range.logical; at < range.end(); at += kGrain) ++names[at / kGrain];
    }
    for (const LogicalRange& range : dropped) {
      for (uint64_t at = range.logical; at < range.end(); at += kGrain) --names[at / kGrain];
    }
    std::vector<uint64_t> found(kGrains, 1);
    for (const SharedRun& shared : all()) {
      for (uint64_t at = shared.logical; at < shared.end(); at += kGrain) found[at / kGrain] = shared.names;
    }
    ASSERT_EQ(found, names) << "round " << round;
  }
}

TEST_P(Sharing, AnImpossibleRecordIsAnError) {
  Batch batch;
  put_value(batch, number_key(kShareTag, 5 * kGrain), StoredShare{kGrain, 1});
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  EXPECT_EQ(SharedRuns(*store_).within(grains(0, 9)).error().number(), EUCLEAN);
}

INSTANTIATE_TEST_SUITE_P(Meta, Sharing, ::testing::Values(Engine::kMemory, Engine::kRocksdb), engine_name);

}  // namespace
}  // namespace pnfsrdma::mds
