// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/queue_pair.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "shared/base/random.h"

namespace pnfsrdma::rdma::iwarp {
namespace {

// Whose send() does not return as long as it is held, as a kernel that copies.
class HeldStream final : public Stream {
 public:
  ssize_t receive(std::span<const iovec>) override { return -EAGAIN; }
  ssize_t receive_blocking(MutableByteSpan, SteadyTime) override { return -EAGAIN; }
  ssize_t send(std::span<const iovec> from) override {
    std::unique_lock lock(mutex_);
    sending_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    sending_ = false;
    size_t count = 0;
    for (const iovec& piece : from) count += piece.iov_len;
    return static_cast<ssize_t>(count);
  }
  bool wait_ready(bool, bool, SteadyTime) override { return true; }
  void wake() override {}
  void finish_sending() override {}
  void shut_down() override {}
  int fd() const override { return -1; }
  void watch_writable(bool) override {}
  std::string peer() const override { return "nobody"; }

  void wait_for_sender() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return sending_; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = true, sending_ = false;
};

TEST(IwarpQueuePair, AWriteDoesNotEndWhileItsMemoryIsBeingSent) {
  SeededRandom random(1);
  auto domain = std::make_shared<SoftwareDomain>();
  std::array<std::byte, 4096> memory{};
  const auto region = make_software_region(domain, memory, Access::kLocalWrite, nullptr, random);
  ASSERT_TRUE(region);
  auto made = std::make_unique<HeldStream>();
  HeldStream& stream = *made;
  IwarpQueuePair queue_pair(std::move(made), domain, {});
  const LocalSlice source{memory.data(), memory.size(), (*region)->local_key()};
  ASSERT_TRUE(queue_pair.post_write(1, {&source, 1}, RemoteSlice{0x1000, memory.size(), 7}));
  std::thread sender([&] { queue_pair.submit(); });
  stream.wait_for_sender();
  std::thread ender([&] { queue_pair.fail(); });
  std::array<Completion, 4> completions;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_EQ(queue_pair.poll(completions), 0u) << "whoever posted it may use the memory again";
    ASSERT_TRUE(queue_pair.connected()) << "all that ever ends would have been delivered";
  }
  stream.release();
  ender.join();
  sender.join();
  EXPECT_FALSE(queue_pair.connected());
  ASSERT_EQ(queue_pair.poll(completions), 1u);
  EXPECT_EQ(completions[0].work_id, 1u);
  EXPECT_EQ(completions[0].outcome, Outcome::kFlushed);
}

}  // namespace
}  // namespace pnfsrdma::rdma::iwarp
