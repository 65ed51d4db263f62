// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/mapping_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace pnfsrdma::brick {
namespace {

using BlocksStatus = blocks::Status;
using Mapping = MappingTable::Mapping;

constexpr uint64_t kSize = 4096;

Mapping read_only(uint64_t first, uint64_t count) {
  return {first * kSize, count, false, false};
}
Mapping exclusive(uint64_t first, uint64_t count) {
  return {first * kSize, count, true, false};
}
Mapping shared(uint64_t first, uint64_t count, bool writable = true) {
  return {first * kSize, count, writable, true};
}

TEST(MappingTable, OnlyWhatOverlapsAndWritesExcludesUnlessBothAreShared) {
  const Mapping kinds[] = {read_only(4, 2), exclusive(4, 2), shared(4, 2), shared(4, 2, false)};
  const bool together[4][4] = {{true, false, false, true},
                               {false, false, false, false},
                               {false, false, true, true},
                               {true, false, true, true}};
  for (int first = 0; first < 4; ++first) {
    for (int second = 0; second < 4; ++second) {
      MappingTable table(kSize);
      EXPECT_EQ(table.add({1, 1}, kinds[first]), BlocksStatus::kOk);
      const auto expected = together[first][second] ? BlocksStatus::kOk : BlocksStatus::kConflict;
      EXPECT_EQ(table.add({2, 1}, kinds[second]), expected) << first << " " << second;
    }
  }
  MappingTable table(kSize);
  EXPECT_EQ(table.add({1, 1}, exclusive(4, 2)), BlocksStatus::kOk);
  EXPECT_EQ(table.add({1, 2}, exclusive(2, 2)), BlocksStatus::kOk);
  EXPECT_EQ(table.add({1, 3}, exclusive(6, 2)), BlocksStatus::kOk);
  EXPECT_EQ(table.add({1, 4}, read_only(7, 9)), BlocksStatus::kConflict);
}

TEST(MappingTable, WhatHasEndedExcludesNobody) {
  MappingTable table(kSize);
  EXPECT_EQ(table.add({1, 1}, exclusive(0, 4)), BlocksStatus::kOk);
  table.remove({1, 1});
  EXPECT_EQ(table.add({2, 1}, exclusive(3, 1)), BlocksStatus::kOk);
  EXPECT_TRUE(table.overlapping(0, 3).empty());
  EXPECT_EQ(table.overlapping(0, 5 * kSize).size(), 1u);
}

TEST(MappingTable, AMappingOfBeforeIsHadAgainIfNobodyHadTheBlocksMeanwhile) {
  MappingTable table(kSize);
  EXPECT_EQ(table.reclaim({1, 1}, exclusive(0, 2)), BlocksStatus::kOk);
  // Somebody is gone again, but has been there.
  EXPECT_EQ(table.add({2, 1}, exclusive(2, 2)), BlocksStatus::kOk);
  table.remove({2, 1});
  EXPECT_EQ(table.reclaim({1, 2}, exclusive(3, 1)), BlocksStatus::kRevoked);
  EXPECT_EQ(table.reclaim({1, 2}, read_only(3, 1)), BlocksStatus::kRevoked);
  EXPECT_EQ(table.reclaim({1, 3}, exclusive(4, 1)), BlocksStatus::kOk);
  // Who only reads changes nothing for who reads.
  EXPECT_EQ(table.add({2, 2}, read_only(8, 2)), BlocksStatus::kOk);
  EXPECT_EQ(table.reclaim({1, 4}, read_only(8, 2)), BlocksStatus::kOk);
}

TEST(MappingTable, BlocksThatWereTakenBackAreNotHadAgain) {
  MappingTable table(kSize);
  table.taken_back(4 * kSize, 2);
  EXPECT_EQ(table.reclaim({1, 1}, shared(5, 3)), BlocksStatus::kRevoked);
  EXPECT_EQ(table.reclaim({1, 1}, shared(6, 3)), BlocksStatus::kOk);
}

TEST(MappingTable, AfterTheLeaseNothingIsHadAgain) {
  MappingTable table(kSize);
  table.end_reclaims();
  EXPECT_EQ(table.reclaim({1, 1}, read_only(0, 1)), BlocksStatus::kRevoked);
  EXPECT_EQ(table.add({1, 1}, read_only(0, 1)), BlocksStatus::kOk);
}

TEST(MappingTable, ThereIsALimit) {
  MappingTable table(kSize);
  for (uint64_t i = 0; i < blocks::kMappingsMax; ++i)
    ASSERT_EQ(table.add({1, i + 1}, read_only(0, 1)), BlocksStatus::kOk);
  EXPECT_EQ(table.add({2, 1}, read_only(0, 1)), BlocksStatus::kLimit);
  EXPECT_EQ(table.reclaim({2, 1}, read_only(0, 1)), BlocksStatus::kLimit);
}

// Beside a model of each block: no block is ever in two hands of which one writes alone.
TEST(MappingTable, NoBlockIsInTwoHandsThatExcludeEachOther) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](uint64_t most) { return random() % most; };
    MappingTable table(kSize);
    std::map<MappingTable::Key, Mapping> model;
    for (int step = 0; step < 400; ++step) {
      const MappingTable::Key key{1 + pick(4), static_cast<uint64_t>(step)};
      const Mapping wanted{pick(16) * kSize, 1 + pick(4), pick(2) == 0, pick(3) == 0};
      if (!model.empty() && pick(3) == 0) {
        const auto ended = std::next(model.begin(), static_cast<ptrdiff_t>(pick(model.size())));
        table.remove(ended->first);
        model.erase(ended);
      } else if (table.add(key, wanted) == BlocksStatus::kOk) {
        model.emplace(key, wanted);
      }
      for (uint64_t block = 0; block < 20; ++block) {
        size_t holders = 0;
        size_t writers = 0;
        size_t alone = 0;
        for (const auto& [holder, mapping] : model) {
          if (block * kSize < mapping.address || block * kSize >= mapping.address + mapping.count * kSize)
            continue;
          ++holders;
          writers += mapping.writable ? 1 : 0;
          alone += mapping.shared ? 0 : 1;
        }
        ASSERT_TRUE(holders < 2 || writers == 0 || alone == 0) << "seed " << seed << " step " << step;
      }
      ASSERT_EQ(table.size(), model.size());
    }
  }
}

}  // namespace
}  // namespace pnfsrdma::brick
