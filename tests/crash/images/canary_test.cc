// SPDX-License-Identifier: Apache-2.0
// The same tests with something broken on purpose: each must be noticed, or the tests above prove nothing.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/crash/images/scenario.h"

namespace pnfsrdma::crash {
namespace {

constexpr uint64_t kSeeds = 12;

// Whether any of a few runs finds a problem whose text has `what` in it.
bool noticed(const Faults& faults, const std::string& what) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Outcome outcome = run_random(seed, Engine::kMemory, 4, false, faults);
    const bool found = std::ranges::any_of(outcome.problems, [&](const std::string& problem) {
      return problem.find(what) != std::string::npos;
    });
    if (found) return true;
  }
  return false;
}

TEST(Canary, SoundRunsHaveNoProblems) {
  EXPECT_FALSE(noticed({}, ""));
}

TEST(Canary, ABrickThatDoesNotFlushDataLosesSyncedBytes) {
  EXPECT_TRUE(noticed({.skip_data_flushes = true}, "was synced"));
}

TEST(Canary, ABrickThatSkipsAFlushOfItsTableLosesBlocks) {
  EXPECT_TRUE(noticed({.skip_table_flush_every = 5}, ""));
}

TEST(Canary, ABrickThatDoesNotZeroShowsBytesOfOtherFiles) {
  EXPECT_TRUE(noticed({.skip_zeroing = true}, ""));
}

TEST(Canary, MetadataThatPretendsToSyncLosesFiles) {
  EXPECT_TRUE(noticed({.pretend_sync = true}, ""));
}

TEST(Canary, AClientThatCommitsBeforeItFlushesLosesSyncedBytes) {
  EXPECT_TRUE(noticed({.commit_before_flush = true}, "was synced"));
}

}  // namespace
}  // namespace pnfsrdma::crash
