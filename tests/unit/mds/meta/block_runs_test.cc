// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/block_runs.h"

#include <gtest/gtest.h>

#include <set>

#include "shared/base/random.h"

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

TEST(BlockRuns, AgreesWithASet) {
  SeededRandom random(5);
  BlockRuns runs;
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
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
