// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/exclusion.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace pnfsrdma::initiator {
namespace {

Result<> always() {
  return {};
}

TEST(Exclusion, ManyAtOnceOrOneAlone) {
  Exclusion exclusion;
  std::atomic<int> inside = 0, alone = 0, rounds = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) {
        ASSERT_TRUE(exclusion.enter(always));
        ++inside;
        EXPECT_EQ(alone, 0);
        --inside;
        exclusion.leave();
      }
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) {
        ASSERT_TRUE(exclusion.enter_alone(always));
        EXPECT_EQ(++alone, 1);
        EXPECT_EQ(inside, 0);
        --alone;
        exclusion.leave_alone();
        ++rounds;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rounds, 200);
}

TEST(Exclusion, WhoeverIsNotWantedAnyMoreWaitsNoLongerAndLeavesNoTrace) {
  Exclusion exclusion;
  const auto killed = []() -> Result<> { return fail(EINTR, "killed"); };
  ASSERT_TRUE(exclusion.enter(always));
  EXPECT_EQ(exclusion.enter_alone(killed).error().number(), EINTR);
  ASSERT_TRUE(exclusion.enter(killed)) << "nobody is alone: there is nothing to wait for";
  exclusion.leave();
  exclusion.leave();
  ASSERT_TRUE(exclusion.enter_alone(killed));
  EXPECT_EQ(exclusion.enter(killed).error().number(), EINTR);
  EXPECT_EQ(exclusion.enter_alone(killed).error().number(), EINTR);
  exclusion.leave_alone();
  EXPECT_TRUE(exclusion.enter(killed));
  exclusion.leave();
}

}  // namespace
}  // namespace pnfsrdma::initiator
