// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/free_runs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::brick {
namespace {

FreeRuns runs_of(std::initializer_list<PhysicalRun> runs) {
  FreeRuns free;
  for (const PhysicalRun& run : runs) {
    for (uint64_t i = 0; i < run.count; ++i) free.insert(run.first + i);
  }
  return free;
}

using Taken = std::vector<PhysicalRun>;

TEST(FreeRuns, ContiguousWishTakesTheShortestRunThatIsLongEnough) {
  FreeRuns free = runs_of({{0, 10}, {20, 4}, {30, 6}});
  EXPECT_EQ(free.take(5, true), (Taken{{30, 5}}));
  EXPECT_EQ(free.size(), 15u);
}

TEST(FreeRuns, ContiguousWishThatCannotBeHadGetsTheFewestRuns) {
  FreeRuns free = runs_of({{0, 3}, {20, 4}, {30, 6}});
  EXPECT_EQ(free.take(9, true), (Taken{{30, 6}, {0, 3}}));
}

TEST(FreeRuns, WithoutTheWishLongRunsStayWhole) {
  FreeRuns free = runs_of({{0, 10}, {20, 1}, {30, 2}});
  EXPECT_EQ(free.take(3, false), (Taken{{20, 1}, {30, 2}}));
  EXPECT_EQ(free.take(10, true), (Taken{{0, 10}}));
}

TEST(FreeRuns, BlocksComingBackInAnyOrderJoin) {
  FreeRuns free;
  for (const uint64_t block : {5, 3, 4, 1, 2, 0}) free.insert(block);
  EXPECT_EQ(free.take(6, true), (Taken{{0, 6}}));
}

TEST(FreeRuns, NoBlockIsGivenTwiceOrLost) {
  SeededRandom random(7);
  FreeRuns free = runs_of({{0, 256}});
  std::vector<bool> taken(256, false);
  for (int round = 0; round < 2000; ++round) {
    if (random.next_u32() % 2 == 0 && free.size() > 0) {
      for (const PhysicalRun& run :
           free.take(1 + random.next_u32() % free.size(), random.next_u32() % 2 == 0)) {
        for (uint64_t i = 0; i < run.count; ++i) {
          ASSERT_FALSE(taken[run.first + i]);
          taken[run.first + i] = true;
        }
      }
    } else {
      const uint64_t block = random.next_u32() % 256;
      if (taken[block]) free.insert(block);
      taken[block] = false;
    }
    ASSERT_EQ(free.size(), static_cast<uint64_t>(std::count(taken.begin(), taken.end(), false)));
  }
}

}  // namespace
}  // namespace pnfsrdma::brick
