// SPDX-License-Identifier: Apache-2.0
// Power cuts over brick, metadata server and client in one process. CRASH_SEED=n runs that seed alone, with
// CRASH_SEEDS=m that many from there on.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/crash/images/scenario.h"

namespace pnfsrdma::crash {
namespace {

void expect_sound(const Outcome& outcome, uint64_t seed) {
  for (const std::string& problem : outcome.problems)
    ADD_FAILURE() << "CRASH_SEED=" << seed << ": " << problem;
}

// Runs the seeds from `first` on, or the one asked for; says what was done.
void run_seeds(uint64_t first, uint64_t count, Engine engine, int generations, bool restarts) {
  const char* asked = std::getenv("CRASH_SEED");
  if (asked != nullptr) {
    const char* how_many = std::getenv("CRASH_SEEDS");
    first = std::strtoull(asked, nullptr, 10);
    count = how_many != nullptr ? std::strtoull(how_many, nullptr, 10) : 1;
  }
  Outcome all;
  for (uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
    const Outcome outcome = run_random(seed, engine, generations, restarts);
    expect_sound(outcome, seed);
    all.cuts += outcome.cuts;
    all.operations += outcome.operations;
    all.refused += outcome.refused;
  }
  std::printf("%lu power cuts, %lu operations, %lu refused\n", all.cuts, all.operations, all.refused);
  EXPECT_GT(all.operations, 5 * all.cuts);
}

TEST(PowerCut, AtARandomMomentLosesNothingSynced) {
  run_seeds(1, 12, Engine::kMemory, 4, false);
}

TEST(PowerCut, BetweenDeathsOfProcessesLosesNothingSynced) {
  run_seeds(1001, 6, Engine::kMemory, 4, true);
}

TEST(PowerCut, OverRocksdbLosesNothingSynced) {
  run_seeds(2001, 4, Engine::kRocksdb, 4, false);
}

TEST(PowerCut, AtEachEventOfAFixedRunLosesNothingSynced) {
  const Outcome outcome = run_fixed(1, 1, 1);
  expect_sound(outcome, 1);
  std::printf("%lu power cuts, %lu operations\n", outcome.cuts, outcome.operations);
  EXPECT_GT(outcome.cuts, 200u);
}

}  // namespace
}  // namespace pnfsrdma::crash
