// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/async_events.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace pnfsrdma::rdma::verbs {
namespace {

class Told final : public AsyncEventTarget {
 public:
  void async_event(ibv_event_type type) override { events.push_back(type); }
  std::vector<ibv_event_type> events;
};

// A device that says nothing by itself: its events are handed in.
class AsyncEventsTest : public testing::Test {
 protected:
  AsyncEventsTest() {
    EXPECT_EQ(::pipe(ends_), 0);
    context_.async_fd = ends_[0];
    events_ = std::make_unique<AsyncEvents>(&context_, "fake0");
    events_->add(&first_);
    events_->add(&second_);
  }
  ~AsyncEventsTest() override {
    events_.reset();
    for (const int end : ends_) ::close(end);
  }

  int ends_[2];
  ibv_context context_{};
  std::unique_ptr<AsyncEvents> events_;
  Told first_, second_;
};

using Types = std::vector<ibv_event_type>;

TEST_F(AsyncEventsTest, ADeviceThatIsBrokenIsToldToAllItsQueuePairs) {
  ibv_async_event event{};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  events_->handle(event);
  EXPECT_EQ(first_.events, Types{IBV_EVENT_DEVICE_FATAL});
  EXPECT_EQ(second_.events, Types{IBV_EVENT_DEVICE_FATAL});
}

TEST_F(AsyncEventsTest, WhoHasGoneIsNotTold) {
  events_->remove(&first_);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  events_->handle(event);
  EXPECT_TRUE(first_.events.empty());
  EXPECT_EQ(second_.events.size(), 1u);
}

TEST_F(AsyncEventsTest, AnErrorOfACompletionQueueIsToldToItsQueuePair) {
  ibv_cq queue{};
  queue.cq_context = static_cast<AsyncEventTarget*>(&second_);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = &queue;
  events_->handle(event);
  EXPECT_TRUE(first_.events.empty());
  EXPECT_EQ(second_.events, Types{IBV_EVENT_CQ_ERR});
}

TEST_F(AsyncEventsTest, APortThatGoesDownEndsNothing) {
  ibv_async_event event{};
  event.event_type = IBV_EVENT_PORT_ERR;
  events_->handle(event);
  EXPECT_TRUE(first_.events.empty());
}

}  // namespace
}  // namespace pnfsrdma::rdma::verbs
