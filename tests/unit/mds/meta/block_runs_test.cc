// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/block_runs.h"

#include <gtest/gtest.h>

#include <set>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

TEST(BlockRuns, JoinsNeighbours) {
  BlockRuns runs;
  runs.insert(10, 2);
  runs.insert(14, 2);
  runs.insert(12, 2);
  EXPECT_EQ(runs.without({}), (std::vector<brick::Run>{{10 * brick::kBlockSize, 6}}));
  EXPECT_EQ(runs.count(), 6u);
  EXPECT_EQ(runs.end(), 16u);
}

TEST(BlockRuns, TellsWhatAnotherSetLacks) {
  BlockRuns a;
  a.insert(0, 10);
  BlockRuns b;
  b.insert(2, 3);
  b.insert(9, 5);
  EXPECT_EQ(a.without(b), (std::vector<brick::Run>{{0, 2}, {5 * brick::kBlockSize, 4}}));
  EXPECT_EQ(b.without(a), (std::vector<brick::Run>{{10 * brick::kBlockSize, 4}}));
}

TEST(BlockRuns, TellsNoMoreOfItThanIsAskedFor) {
  BlockRuns a;
  for (uint64_t block = 0; block < 10; block += 2) a.insert(block, 1);
  a.insert(20, 10);
  BlockRuns b;
  b.insert(24, 1);
  const auto starts = [&](uint64_t from, uint64_t to, size_t most) {
    std::vector<uint64_t> found;
    for (const brick::Run& run : a.without(b, from, to, most))
      found.push_back(run.logical / brick::kBlockSize);
    return found;
  };
  EXPECT_EQ(starts(3, 100, 2), (std::vector<uint64_t>{4, 6}));
  EXPECT_EQ(starts(9, 23, 10), std::vector<uint64_t>{20});
  EXPECT_EQ(starts(22, 100, 10), (std::vector<uint64_t>{22, 25}));
  EXPECT_EQ(starts(22, 100, 1), std::vector<uint64_t>{22});
}

TEST(BlockRuns, AgreesWithASet) {
  SeededRandom random(5);
  BlockRuns runs;
  BlockRuns other;
  std::set<uint64_t> others;
  std::set<uint64_t> model;
  for (int step = 0; step < 2000; ++step) {
    const uint64_t first = random.next_u64() % 100;
    const uint64_t count = random.next_u64() % 8;
    const bool insert = random.next_u64() % 2 == 0;
    insert ? runs.insert(first, count) : runs.erase(first, count);
    for (uint64_t i = first; i < first + count; ++i) {
      if (insert) {
        model.insert(i);
      } else {
        model.erase(i);
      }
    }
    ASSERT_EQ(runs.count(), model.size());
    for (uint64_t i = 0; i < 110; ++i) ASSERT_EQ(runs.contains(i), model.contains(i));
    ASSERT_EQ(runs.end(), model.empty() ? 0 : *model.rbegin() + 1);
    const uint64_t changed = random.next_u64() % 110;
    if (others.insert(changed).second) {
      other.insert(changed, 1);
    } else {
      others.erase(changed);
      other.erase(changed, 1);
    }
    const uint64_t from = random.next_u64() % 110;
    const uint64_t to = from + random.next_u64() % 50;
    std::set<uint64_t> rest;
    for (const brick::Run& run : runs.without(other, from, to)) {
      for (uint64_t i = 0; i < run.count; ++i) rest.insert(run.logical / brick::kBlockSize + i);
    }
    for (uint64_t i = 0; i < 110; ++i)
      ASSERT_EQ(rest.contains(i), from <= i && i < to && model.contains(i) && !others.contains(i)) << step;
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
