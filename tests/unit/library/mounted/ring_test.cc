// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/ring.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <deque>

#include "tests/unit/library/mounted/fake_mount.h"

namespace pnfsrdma::library::mounted {
namespace {

class Recorder final : public Ring::Waiter {
 public:
  using Waiter::Waiter;
  bool start(uint64_t offset, Doorbell doorbell = Doorbell::kNow) {
    result.reset();
    return submit({.offset = offset}, doorbell);
  }
  std::optional<int64_t> result;

 private:
  void completed(int64_t told) override { result = told; }
};

class RingTest : public testing::Test {
 protected:
  RingTest() {
    mount_.serve();
    door_ = std::move(*Door::open(mount_.name()));
    ring_ = std::move(*Ring::make(*door_));
  }
  bool readable(int milliseconds = 0) const {
    pollfd state{ring_->completion_fd(), POLLIN, 0};
    return ::poll(&state, 1, milliseconds) > 0;
  }

  FakeMount mount_;
  std::unique_ptr<Door> door_;
  std::unique_ptr<Ring> ring_;
};

TEST_F(RingTest, WhoHasSubmittedHearsOfItsCompletion) {
  Recorder one(*ring_), two(*ring_);
  ASSERT_TRUE(one.start(1) && two.start(2));
  const auto first = mount_.rings->take(), second = mount_.rings->take();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->offset, 1u);
  mount_.complete({second->user_data, 20});
  ring_->progress();
  EXPECT_EQ(two.result, 20);
  EXPECT_FALSE(one.result);
  mount_.complete({first->user_data, 10});
  ring_->progress();
  EXPECT_EQ(one.result, 10);
}

TEST_F(RingTest, TheMountIsRungWhenItSleepsAndOnceForMany) {
  Recorder one(*ring_), two(*ring_);
  ASSERT_TRUE(mount_.rings->may_sleep());
  ASSERT_TRUE(one.start(1, Doorbell::kLater) && two.start(2, Doorbell::kLater));
  EXPECT_FALSE(mount_.rung());
  EXPECT_FALSE(mount_.rings->take());
  ring_->ring();
  EXPECT_TRUE(mount_.rung());
  mount_.rings->awake();
  ring_->ring();
  EXPECT_FALSE(mount_.rung());
  for (int i = 0; i < 2; ++i) mount_.complete({mount_.rings->take()->user_data, 0});
  ASSERT_TRUE(one.start(1));
  EXPECT_FALSE(mount_.rung()) << "it is awake";
  mount_.complete({mount_.rings->take()->user_data, 0});
  ring_->progress();
}

TEST_F(RingTest, WhoOnlyPollsIsWokenByEachCompletion) {
  Recorder waiter(*ring_);
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(waiter.start(1));
    EXPECT_FALSE(readable());
    mount_.complete({mount_.rings->take()->user_data, turn});
    EXPECT_TRUE(readable());
    ring_->progress();
    EXPECT_EQ(waiter.result, turn);
    EXPECT_FALSE(readable());
  }
}

TEST_F(RingTest, AFullRingTakesNothing) {
  std::deque<Recorder> waiters;
  for (uint32_t i = 0; i < FakeMount::kDepth; ++i) ASSERT_TRUE(waiters.emplace_back(*ring_).start(i));
  Recorder last(*ring_);
  EXPECT_FALSE(last.start(99));
  const auto taken = mount_.rings->take();
  ASSERT_TRUE(taken);
  mount_.complete({taken->user_data, 0});
  ring_->progress();
  EXPECT_TRUE(last.start(99));
  for (uint32_t i = 0; i < FakeMount::kDepth; ++i) mount_.complete({mount_.rings->take()->user_data, 5});
  ring_->progress();
  EXPECT_EQ(last.result, 5);
}

TEST_F(RingTest, CompletionsOfNothingThatIsUnderWayAreIgnored) {
  Recorder waiter(*ring_);
  uint64_t number = 0;
  {
    Recorder gone(*ring_);
    ASSERT_TRUE(gone.start(1));
    number = mount_.rings->take()->user_data;
    mount_.complete({number, 0});
    ring_->progress();
  }
  for (const uint64_t wrong : {number, uint64_t{0}, uint64_t{2}, uint64_t{1} << 32, UINT64_MAX}) {
    mount_.complete({wrong, 1});
    ring_->progress();
    EXPECT_FALSE(waiter.result);
  }
}

TEST_F(RingTest, WhatIsUnderWayFailsWhenTheMountIsGone) {
  Recorder one(*ring_), two(*ring_), idle(*ring_);
  ASSERT_TRUE(one.start(1) && two.start(2));
  mount_.complete({mount_.rings->take()->user_data, 10});
  mount_.die();
  // As who waits does: until nothing is under way.
  for (int turns = 0; turns < 5 && !two.result; ++turns) {
    ASSERT_TRUE(readable(1000));
    ring_->progress();
  }
  EXPECT_EQ(one.result, 10) << "it was done before";
  EXPECT_EQ(two.result, -EIO);
  EXPECT_FALSE(idle.result);
  EXPECT_FALSE(one.start(1));
  EXPECT_FALSE(readable());
}

}  // namespace
}  // namespace pnfsrdma::library::mounted
