// SPDX-License-Identifier: Apache-2.0
// The runs of power_cut_test.cc with something broken on purpose: each must be noticed, or those prove
// nothing. (That sound runs have no problems is what power_cut_test.cc says.)
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/crash/images/scenario.h"

namespace pnfsrdma::crash {
namespace {

constexpr uint64_t kSeeds = 60;  // one or two tell, unless others keep the processors

// Whether one of a few runs finds a problem whose text has `what` in it.
bool noticed(const Faults& faults, const std::string& what) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Outcome outcome = run_random(seed, Engine::kMemory, 4, false, faults);
    for (const std::string& problem : outcome.problems) {
      if (problem.find(what) == std::string::npos) continue;
      std::printf("seed %lu: %s\n", seed, problem.c_str());
      return true;
    }
  }
  return false;
}

TEST(Canary, ABrickThatDoesNotFlushDataLosesSyncedBytes) {
  EXPECT_TRUE(noticed({.skip_data_flushes = true}, "was synced"));
}

TEST(Canary, ABrickThatSkipsSomeFlushesOfItsTableLosesBlocks) {
  EXPECT_TRUE(noticed({.skip_table_flush_every = 2}, ""));
}

TEST(Canary, ABrickThatDoesNotZeroShowsOldBytes) {
  EXPECT_TRUE(noticed({.skip_zeroing = true}, ""));
}

TEST(Canary, ABrickThatDoesNotFlushZerosShowsOldBytes) {
  EXPECT_TRUE(noticed({.skip_zero_flushes = true}, ""));
}

TEST(Canary, MetadataThatPretendsToSyncLosesFiles) {
  EXPECT_TRUE(noticed({.pretend_sync = true}, ""));
}

TEST(Canary, AClientThatCallsItSyncedBeforeItFlushesLosesBytes) {
  EXPECT_TRUE(noticed({.commit_before_flush = true}, "was synced"));
}

TEST(Canary, AMissingNativeFlushLosesSyncedBytes) {
  EXPECT_TRUE(noticed({.skipped_flush = Flush::kNative}, "was synced"));
}

TEST(Canary, AMissingCommitMessageLosesSyncedBytes) {
  EXPECT_TRUE(noticed({.skipped_flush = Flush::kMessage}, "was synced"));
}

TEST(Canary, AMissingFlushByTheServerLosesSyncedBytes) {
  EXPECT_TRUE(noticed({.skipped_flush = Flush::kLayoutCommit}, "was synced"));
}

}  // namespace
}  // namespace pnfsrdma::crash
