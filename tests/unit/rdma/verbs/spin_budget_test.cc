// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/spin_budget.h"

#include <gtest/gtest.h>

namespace pnfsrdma::rdma::verbs {
namespace {

using namespace std::chrono_literals;

TEST(SpinBudget, IsNothingWithOneProcessor) {
  SpinBudget budget(1);
  for (int i = 0; i < 100; ++i) budget.learn(1us);
  EXPECT_EQ(budget.now(), 0us);
}

TEST(SpinBudget, CoversTheUsualWait) {
  SpinBudget budget(2);
  for (int i = 0; i < 100; ++i) budget.learn(30us);
  EXPECT_GT(budget.now(), 45us);
  EXPECT_LT(budget.now(), 100us);
}

TEST(SpinBudget, IsNothingWhenWaitsAreLong) {
  SpinBudget budget(2);
  for (int i = 0; i < 20; ++i) budget.learn(10ms);
  EXPECT_EQ(budget.now(), 0us);
}

TEST(SpinBudget, ForgetsAPauseAfterAFewShortWaits) {
  SpinBudget budget(2);
  for (int i = 0; i < 20; ++i) budget.learn(1h);
  for (int i = 0; i < 10; ++i) budget.learn(20us);
  EXPECT_GT(budget.now(), 40us);
}

}  // namespace
}  // namespace pnfsrdma::rdma::verbs
