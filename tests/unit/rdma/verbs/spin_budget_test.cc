// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/spin_budget.h"

#include <gtest/gtest.h>

namespace pnfsrdma::rdma::verbs {
namespace {

using namespace std::chrono_literals;

TEST(SpinBudget, IsNothingWithOneProcessor) {
  SpinBudget budget(1);
  for (int i = 0; i < 100; ++i) budget.learn(1us, true);
  EXPECT_EQ(budget.next(), 0us);
}

TEST(SpinBudget, CoversTheUsualWait) {
  SpinBudget budget(2);
  for (int i = 0; i < 100; ++i) budget.learn(30us, true);
  const auto spin = budget.next();
  EXPECT_GT(spin, 45us);
  EXPECT_LT(spin, 100us);
}

TEST(SpinBudget, IsNothingWhenWaitsAreLong) {
  SpinBudget budget(2);
  for (int i = 0; i < 20; ++i) budget.learn(10ms, false);
  EXPECT_EQ(budget.next(), 0us);
}

TEST(SpinBudget, ForgetsAPauseAfterAFewShortWaits) {
  SpinBudget budget(2);
  for (int i = 0; i < 20; ++i) budget.learn(1h, false);
  for (int i = 0; i < 10; ++i) budget.learn(20us, true);
  EXPECT_GT(budget.next(), 40us);
}

// On a busy machine two waits of five may be long, and the other three be worth their spinning all the same.
TEST(SpinBudget, GoesByMostWaitsAndNotByTheMean) {
  SpinBudget budget(2);
  int spun = 0;
  for (int i = 0; i < 500; ++i) {
    const std::chrono::microseconds wait = i % 5 < 3 ? 170us : 5000us;
    const bool found = budget.next() >= wait;
    spun += found;
    budget.learn(wait, found);
  }
  EXPECT_GE(spun, 280);
}

// Where a sleep costs more than the completion takes, a spin finds out.
TEST(SpinBudget, TriesNowAndThenWhetherWaitsAreStillLong) {
  SpinBudget budget(2);
  int spins = 0;
  for (int i = 0; i < 160; ++i) {
    budget.learn(600us, false);
    spins += budget.next() > 400us;
  }
  EXPECT_GE(spins, 5);
  EXPECT_LE(spins, 20);
}

TEST(SpinBudget, BelievesAWaitThatASpinFoundShort) {
  SpinBudget budget(2);
  for (int i = 0; i < 100; ++i) budget.learn(600us, false);
  budget.learn(140us, true);
  EXPECT_GT(budget.next(), 140us);
  EXPECT_LT(budget.next(), 400us);
}

}  // namespace
}  // namespace pnfsrdma::rdma::verbs
