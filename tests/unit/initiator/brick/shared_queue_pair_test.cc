// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/shared_queue_pair.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/log_observer.h"
#include "shared/brick/session_codec.h"
#include "shared/initiator/brick/hello.h"
#include "tests/doubles/rdma_memory/transport.h"

namespace pnfsrdma::initiator {
namespace {

SteadyTime time_now() {
  return std::chrono::steady_clock::now();
}

// A device that answers nothing, and hands back what was posted only some time after the end.
class SilentQueuePair final : public rdma::QueuePair {
 public:
  explicit SilentQueuePair(Milliseconds hands_back_after) : hands_back_after_(hands_back_after) {}

  Result<> post_write(uint64_t work_id, std::span<const rdma::LocalSlice>, rdma::RemoteSlice) override {
    work_id_ = work_id;
    return {};
  }
  Result<> post_read(uint64_t, rdma::LocalSlice, rdma::RemoteSlice) override { return {}; }
  Result<> post_send(uint64_t, std::span<const rdma::LocalSlice>) override { return {}; }
  Result<> post_receive(uint64_t, rdma::LocalSlice) override { return {}; }
  Result<> post_flush(uint64_t, rdma::RemoteSlice, rdma::FlushLevel) override { return {}; }
  Result<> post_atomic_write(uint64_t, uint64_t, rdma::RemoteSlice) override { return {}; }
  void submit() override {}
  size_t poll(std::span<rdma::Completion> completions) override {
    if (connected() || work_id_ == 0) return 0;
    completions[0] = {.work_id = std::exchange(work_id_, 0), .outcome = rdma::Outcome::kFlushed};
    return 1;
  }
  bool wait(SteadyTime deadline) override {
    ++waits;
    while (connected()) {
      if (time_now() >= deadline) return false;
      std::this_thread::sleep_for(Milliseconds(1));
    }
    return true;
  }
  int fd() const override { return -1; }
  bool connected() const override { return ends_at_ == SteadyTime() || time_now() < ends_at_; }
  void fail() override {
    if (ends_at_ == SteadyTime()) ends_at_ = time_now() + hands_back_after_;
  }
  const rdma::QueuePairLimits& limits() const override { return limits_; }
  rdma::TransportCounters counters() const override { return {}; }
  std::string peer() const override { return "silent"; }

  int waits = 0;

 private:
  const Milliseconds hands_back_after_;
  rdma::QueuePairLimits limits_;
  uint64_t work_id_ = 0;
  SteadyTime ends_at_;
};

TEST(SharedQueuePair, ADeviceThatHandsNothingBackIsWaitedForAsleepAndNamedOnce) {
  auto silent = std::make_unique<SilentQueuePair>(Milliseconds(200));
  const SilentQueuePair& device = *silent;
  std::atomic<int> named = 0;
  observe_log([&](LogLevel, std::string_view, std::string_view text) {
    if (text.find("device-timeout") != std::string_view::npos) ++named;
  });
  SharedQueuePair queue_pair(std::move(silent), nullptr);
  WorkItem item{.opcode = rdma::Opcode::kWrite};
  WorkBatch batch({&item, 1});
  queue_pair.run(batch, time_now() + Milliseconds(20));
  observe_log(nullptr);
  EXPECT_EQ(item.outcome, rdma::Outcome::kFlushed);
  EXPECT_EQ(named, 1);
  EXPECT_LE(device.waits, 3);
}

// Notes the order of what it is given, and does it at once. Commit messages are answered under one verifier.
class NotingQueuePair final : public rdma::QueuePair {
 public:
  explicit NotingQueuePair(const MessageArea& area) : area_(area) {}

  Result<> post_write(uint64_t work_id, std::span<const rdma::LocalSlice>, rdma::RemoteSlice) override {
    return done(work_id, "write");
  }
  Result<> post_read(uint64_t work_id, rdma::LocalSlice, rdma::RemoteSlice) override {
    return done(work_id, "read");
  }
  Result<> post_send(uint64_t work_id, std::span<const rdma::LocalSlice>) override {
    const size_t length =
        brick::encode_session_message(brick::PersistReply{.id = ++answered_}, area_.receive_bytes(0));
    (void)done(work_id, "send");
    completions_.push_back({.work_id = receive_work_id(0),
                            .opcode = rdma::Opcode::kReceive,
                            .length = static_cast<uint32_t>(length)});
    return {};
  }
  Result<> post_receive(uint64_t, rdma::LocalSlice) override { return {}; }
  Result<> post_flush(uint64_t work_id, rdma::RemoteSlice, rdma::FlushLevel) override {
    return done(work_id, "flush");
  }
  Result<> post_atomic_write(uint64_t, uint64_t, rdma::RemoteSlice) override { return {}; }
  void submit() override { events.push_back("doorbell"); }
  size_t poll(std::span<rdma::Completion> completions) override {
    const size_t count = std::min(completions.size(), completions_.size());
    std::copy_n(completions_.begin(), count, completions.begin());
    completions_.erase(completions_.begin(), completions_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  bool wait(SteadyTime) override {
    if (!completions_.empty()) events.push_back("wait");
    return true;
  }
  int fd() const override { return -1; }
  bool connected() const override { return true; }
  void fail() override { events.push_back("fail"); }
  const rdma::QueuePairLimits& limits() const override { return limits_; }
  rdma::TransportCounters counters() const override { return {}; }
  std::string peer() const override { return "noting"; }

  std::vector<std::string> events;

 private:
  Result<> done(uint64_t work_id, std::string what) {
    events.push_back(std::move(what));
    completions_.push_back({.work_id = work_id});
    return {};
  }

  const MessageArea& area_;
  rdma::QueuePairLimits limits_;
  std::vector<rdma::Completion> completions_;
  uint64_t answered_ = 0;
};

TEST(SharedQueuePair, ACommitMessageBehindWritesIsOneDoorbellAndOneWait) {
  SystemRandom random;
  const std::shared_ptr<rdma::Transport> transport =
      rdma::memory::make_transport(std::make_shared<rdma::memory::Network>(), random);
  const TransportDomain domain{transport, transport->make_protection_domain()};
  auto area = MessageArea::allocate(domain);
  ASSERT_TRUE(area);
  auto noting = std::make_unique<NotingQueuePair>(**area);
  const NotingQueuePair& device = *noting;
  SharedQueuePair queue_pair(std::move(noting), std::move(*area));
  std::array<WorkItem, 3> items;
  items[0].opcode = items[1].opcode = rdma::Opcode::kWrite;
  WorkBatch batch(items);
  const SteadyTime deadline = time_now() + std::chrono::seconds(5);
  queue_pair.start(batch, brick::PersistCall{.ranges = {{1, 0, 4096}, {2, 0, 4096}}}, deadline);
  queue_pair.finish(batch, deadline);
  EXPECT_EQ(device.events, (std::vector<std::string>{"write", "write", "send", "doorbell", "wait"}));
  EXPECT_TRUE(batch.succeeded());
  ASSERT_TRUE(batch.reply());
  EXPECT_EQ(batch.reply()->status, brick::PersistStatus::kOk);
}

// Counts what it hears.
class Listener final : public BatchOwner {
 public:
  void batch_done(WorkBatch& batch) override {
    if (batch.succeeded()) ++succeeded;
    ++done;
  }
  std::atomic<int> done = 0;
  std::atomic<int> succeeded = 0;
};

// Completes nothing before it is told to, and refuses everything once it has failed.
class HeldQueuePair final : public rdma::QueuePair {
 public:
  Result<> post_write(uint64_t work_id, std::span<const rdma::LocalSlice>, rdma::RemoteSlice) override {
    return post(work_id);
  }
  Result<> post_read(uint64_t work_id, rdma::LocalSlice, rdma::RemoteSlice) override { return post(work_id); }
  Result<> post_send(uint64_t work_id, std::span<const rdma::LocalSlice>) override { return post(work_id); }
  Result<> post_receive(uint64_t, rdma::LocalSlice) override { return {}; }
  Result<> post_flush(uint64_t, rdma::RemoteSlice, rdma::FlushLevel) override { return {}; }
  Result<> post_atomic_write(uint64_t, uint64_t, rdma::RemoteSlice) override { return {}; }
  void submit() override {}
  size_t poll(std::span<rdma::Completion> completions) override {
    const std::lock_guard lock(mutex_);
    size_t count = 0;
    for (; count < completions.size() && releases_ > 0 && !posted_.empty(); --releases_, ++count) {
      completions[count] = {.work_id = posted_.front(),
                            .outcome = failed ? rdma::Outcome::kFlushed : rdma::Outcome::kSuccess};
      posted_.erase(posted_.begin());
    }
    return count;
  }
  bool wait(SteadyTime deadline) override {
    while (!ready()) {
      if (time_now() >= deadline) return false;
      std::this_thread::sleep_for(Milliseconds(1));
    }
    return true;
  }
  int fd() const override { return -1; }
  bool connected() const override { return !failed; }
  void fail() override {
    const std::lock_guard lock(mutex_);
    failed = true;
    releases_ = 1'000'000;
  }
  const rdma::QueuePairLimits& limits() const override { return limits_; }
  rdma::TransportCounters counters() const override { return {}; }
  std::string peer() const override { return "held"; }

  void release(size_t count) {
    const std::lock_guard lock(mutex_);
    releases_ += count;
  }

  std::atomic<bool> failed = false;

 private:
  bool ready() {
    const std::lock_guard lock(mutex_);
    return failed || (releases_ > 0 && !posted_.empty());
  }
  Result<> post(uint64_t work_id) {
    const std::lock_guard lock(mutex_);
    if (failed) return pnfsrdma::fail(ENOTCONN, "ended");
    posted_.push_back(work_id);
    return {};
  }

  std::mutex mutex_;
  rdma::QueuePairLimits limits_{.send_depth = 16};  // 14 of it for batches
  std::vector<uint64_t> posted_;
  size_t releases_ = 0;
};

// One asynchronous READ.
struct Single {
  WorkItem item{.opcode = rdma::Opcode::kRead};
  WorkBatch batch{{&item, 1}};
};

class AsynchronousBatches : public ::testing::Test {
 protected:
  bool start(Single& single, SteadyTime deadline) {
    return queue_pair.try_start(single.batch, listener, deadline);
  }
  bool start(Single& single) { return start(single, time_now() + std::chrono::seconds(60)); }
  void poll() { queue_pair.poll(time_now()); }

  HeldQueuePair* const device = new HeldQueuePair;
  SharedQueuePair queue_pair{std::unique_ptr<rdma::QueuePair>(device), nullptr};
  Listener listener;
};

TEST_F(AsynchronousBatches, ManyAreInFlightAndEachOwnerHearsOnce) {
  std::array<Single, 14> singles;
  for (Single& single : singles) ASSERT_TRUE(start(single));
  poll();
  EXPECT_EQ(listener.done, 0);
  device->release(5);
  poll();
  EXPECT_EQ(listener.done, 5);
  device->release(100);
  poll();
  poll();
  EXPECT_EQ(listener.done, 14);
  EXPECT_EQ(listener.succeeded, 14);
  EXPECT_EQ(queue_pair.in_flight(), 0u);
}

TEST_F(AsynchronousBatches, WithoutRoomNothingIsStartedAndTheSameBatchMayBeTriedAgain) {
  std::array<Single, 14> singles;
  for (Single& single : singles) ASSERT_TRUE(start(single));
  Single another;
  EXPECT_FALSE(start(another));
  EXPECT_EQ(queue_pair.in_flight(), 14u);
  device->release(100);
  poll();
  EXPECT_TRUE(start(another));
  poll();
  EXPECT_EQ(listener.succeeded, 15);
}

TEST_F(AsynchronousBatches, WhatIsReservedAndCancelledLeavesItsRoom) {
  std::array<Single, 14> singles;
  for (Single& single : singles) ASSERT_TRUE(queue_pair.try_reserve(single.batch, listener));
  for (Single& single : singles) queue_pair.cancel(single.batch);
  EXPECT_EQ(queue_pair.in_flight(), 0u);
  EXPECT_TRUE(start(singles[0]));
  device->release(1);
  poll();
  EXPECT_EQ(listener.done, 1);
}

TEST_F(AsynchronousBatches, AThreadThatWaitsTakesTheCompletionsOfOthers) {
  Single asynchronous;
  ASSERT_TRUE(start(asynchronous));
  device->release(2);
  Single own;
  queue_pair.run(own.batch, time_now() + std::chrono::seconds(60));
  EXPECT_TRUE(own.batch.succeeded());
  EXPECT_EQ(listener.succeeded, 1);
}

TEST_F(AsynchronousBatches, APollGivesTheRoleOnToWhoSleeps) {
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 200; ++turn) {
        Single own;
        queue_pair.run(own.batch, time_now() + std::chrono::seconds(60));
        if (own.batch.succeeded()) ++done;
      }
    });
  }
  Single single;
  int started = 0;
  while (done < 800) {
    if (listener.done == started && start(single)) ++started;
    device->release(2);
    poll();
  }
  for (auto& thread : threads) thread.join();
  device->release(1);
  poll();
  EXPECT_EQ(listener.succeeded, started);
}

TEST_F(AsynchronousBatches, OneThatIsLateEndsTheConnection) {
  Single late, other;
  ASSERT_TRUE(start(late, time_now() - Milliseconds(1)));
  ASSERT_TRUE(start(other));
  EXPECT_FALSE(queue_pair.ended());
  poll();
  poll();
  EXPECT_TRUE(device->failed);
  EXPECT_EQ(listener.done, 2);
  EXPECT_EQ(listener.succeeded, 0);
  EXPECT_TRUE(queue_pair.ended());
  EXPECT_FALSE(start(other));
}

TEST_F(AsynchronousBatches, OnADeadConnectionThatNobodyHasNoticedTheyEndAtOnce) {
  device->fail();
  Single single;
  EXPECT_TRUE(start(single));
  EXPECT_EQ(listener.done, 1);
  EXPECT_EQ(single.item.outcome, rdma::Outcome::kFlushed);
}

TEST(SharedQueuePair, ACommitMessageWhoseAnswerNeverComesEndsWithTheConnection) {
  SystemRandom random;
  const std::shared_ptr<rdma::Transport> transport =
      rdma::memory::make_transport(std::make_shared<rdma::memory::Network>(), random);
  auto area = MessageArea::allocate({transport, transport->make_protection_domain()});
  ASSERT_TRUE(area);
  auto* const device = new HeldQueuePair;
  SharedQueuePair queue_pair(std::unique_ptr<rdma::QueuePair>(device), std::move(*area));
  Listener listener;
  std::vector<std::unique_ptr<Single>> calls;
  while (true) {
    auto call = std::make_unique<Single>();
    if (!queue_pair.try_reserve(call->batch, listener, brick::PersistCall{.ranges = {{1, 0, 4096}}})) break;
    queue_pair.start_reserved(call->batch, time_now() + std::chrono::seconds(60));
    calls.push_back(std::move(call));
  }
  EXPECT_GT(calls.size(), 0u);
  EXPECT_LE(calls.size(), MessageArea::kSends);
  device->release(calls.size());
  queue_pair.poll(time_now());
  EXPECT_EQ(listener.done, 0) << "sent, not answered";
  device->fail();
  queue_pair.poll(time_now());
  EXPECT_EQ(listener.done, static_cast<int>(calls.size()));
  EXPECT_FALSE(calls.front()->batch.reply());
}

}  // namespace
}  // namespace pnfsrdma::initiator
