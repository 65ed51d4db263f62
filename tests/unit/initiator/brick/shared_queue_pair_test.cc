// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/shared_queue_pair.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "shared/base/log_observer.h"

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

}  // namespace
}  // namespace pnfsrdma::initiator
