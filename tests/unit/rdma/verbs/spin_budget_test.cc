// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/spin_budget.h"

#include <gtest/gtest.h>

namespace pnfsrdma::rdma::verbs {
namespace {

using namespace std::chrono_literals;
using Duration = SpinBudget::Duration;

// A machine on which a sleep adds its cost to the wait.
struct Waiter {
  SpinBudget& budget;
  Duration sleep_cost;
  Duration spent{0};  // by spinning

  // Whether the completion was found without sleep.
  bool wait(Duration completion) {
    const Duration spin = budget.next();
    const bool spun = spin >= completion;
    spent += std::min(spin, completion);
    budget.learn(spun ? completion : completion + sleep_cost, spun);
    return spun;
  }
  int spun_of(int waits, Duration completion) {
    int spun = 0;
    for (int i = 0; i < waits; ++i) spun += wait(completion);
    return spun;
  }
};

TEST(SpinBudget, IsNothingWithOneProcessor) {
  SpinBudget budget(1);
  Waiter waiter{budget, 10us};
  EXPECT_EQ(waiter.spun_of(1000, 1us), 0);
  EXPECT_EQ(waiter.spent, 0us);
}

TEST(SpinBudget, CoversTheUsualWait) {
  SpinBudget budget(2);
  Waiter waiter{budget, 10us};
  EXPECT_GE(waiter.spun_of(1000, 30us), 950);
  const auto spin = budget.next();
  EXPECT_GE(spin, 45us);
  EXPECT_LE(spin, 100us);
}

TEST(SpinBudget, CoversALongWaitToWhichASleepAddsMuch) {
  SpinBudget budget(2);
  Waiter waiter{budget, 380us};
  waiter.spun_of(100, 480us);
  EXPECT_GE(waiter.spun_of(1000, 480us), 950);
}

TEST(SpinBudget, IsNothingWhenASleepAddsLittle) {
  SpinBudget budget(2);
  Waiter waiter{budget, 10us};
  EXPECT_LE(waiter.spun_of(1000, 1ms), 80);
}

TEST(SpinBudget, IsNextToNothingWhenThePeerIsSilent) {
  SpinBudget budget(2);
  Waiter waiter{budget, 10us};
  EXPECT_EQ(waiter.spun_of(1000, 1h), 0);
  EXPECT_LE(waiter.spent / 1000, 150us);
}

TEST(SpinBudget, ForgetsAPauseAfterAFewShortWaits) {
  SpinBudget budget(2);
  Waiter waiter{budget, 10us};
  waiter.spun_of(50, 1h);
  waiter.spun_of(20, 20us);
  EXPECT_GE(waiter.spun_of(50, 20us), 45);
}

// On a busy machine two waits of five may be long, and the other three be worth their spinning all the same.
TEST(SpinBudget, GoesByMostWaitsAndNotByTheMean) {
  SpinBudget budget(2);
  Waiter waiter{budget, 100us};
  int spun = 0;
  for (int i = 0; i < 500; ++i) spun += waiter.wait(i % 5 < 3 ? 170us : 5000us);
  EXPECT_GE(spun, 270);
}

// As where a message's completion and its answer are waited for in turn.
TEST(SpinBudget, CoversTwoKindsOfWait) {
  SpinBudget budget(2);
  Waiter waiter{budget, 300us};
  int spun = 0;
  for (int i = 0; i < 1000; ++i) spun += waiter.wait(i % 2 == 0 ? 120us : 450us);
  EXPECT_GE(spun, 800);
}

}  // namespace
}  // namespace pnfsrdma::rdma::verbs
