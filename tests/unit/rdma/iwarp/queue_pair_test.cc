// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/queue_pair.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "shared/base/bytes.h"
#include "shared/base/crc32c.h"
#include "shared/base/random.h"
#include "shared/rdma/iwarp/wire_format.h"
#include "tests/doubles/seeded_random.h"

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

// Stores to the memory that is being sent before it takes it, as a thread of a program may; keeps what it took.
class ScribbledStream final : public Stream {
 public:
  explicit ScribbledStream(MutableByteSpan memory) : memory_(memory) {}
  ssize_t receive(std::span<const iovec>) override { return -EAGAIN; }
  ssize_t receive_blocking(MutableByteSpan, SteadyTime) override { return -EAGAIN; }
  ssize_t send(std::span<const iovec> from) override {
    for (std::byte& byte : memory_) byte ^= std::byte{0xff};
    size_t count = 0;
    for (const iovec& piece : from) {
      const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
      if (bytes >= memory_.data() && bytes < memory_.data() + memory_.size()) in_place += piece.iov_len;
      sent.insert(sent.end(), bytes, bytes + piece.iov_len);
      count += piece.iov_len;
    }
    return static_cast<ssize_t>(count);
  }
  bool wait_ready(bool, bool, SteadyTime) override { return true; }
  void wake() override {}
  void finish_sending() override {}
  void shut_down() override {}
  int fd() const override { return -1; }
  void watch_writable(bool) override {}
  std::string peer() const override { return "nobody"; }

  Bytes sent;
  size_t in_place = 0;  // bytes that were not copied before

 private:
  const MutableByteSpan memory_;
};

// Of FPDUs with a checksum: whether each has the right one.
bool checksums_hold(ByteSpan frames) {
  while (!frames.empty()) {
    const size_t ulpdu = load_big_endian<uint16_t>(frames.data());
    const size_t size = kLengthSize + ulpdu + padding_of(ulpdu) + kCrcSize;
    uint32_t crc = 0;
    std::memcpy(&crc, frames.data() + size - kCrcSize, kCrcSize);
    if (crc != crc32c(frames.first(size - kCrcSize))) return false;
    frames = frames.subspan(size);
  }
  return true;
}

struct Scribbled {
  bool right = false;
  size_t in_place = 0;
};
// One WRITE of `size` bytes of a region with these rights, and its memory is stored to meanwhile.
Scribbled scribbled_write(Access access, bool crc, size_t size) {
  SeededRandom random(1);
  auto domain = std::make_shared<SoftwareDomain>();
  Bytes memory(size);
  const auto region = make_software_region(domain, memory, access, nullptr, random);
  auto made = std::make_unique<ScribbledStream>(memory);
  ScribbledStream& stream = *made;
  IwarpQueuePair queue_pair(std::move(made), domain, {.crc = crc});
  const LocalSlice source = (*region)->slice(0, static_cast<uint32_t>(size));
  EXPECT_TRUE(queue_pair.post_write(1, {&source, 1}, RemoteSlice{0x1000, size, 7}));
  queue_pair.submit();
  EXPECT_GT(stream.sent.size(), size);
  return {crc && checksums_hold(stream.sent), stream.in_place};
}

// A checksum that does not hold ends the connection, and it is others' connection, too.
TEST(IwarpQueuePair, ChecksumsHoldThoughAProgramStoresToWhatIsSent) {
  for (const size_t size : {size_t{8}, size_t{4096}, size_t{1} << 20}) {
    for (const Access access : {Access::kLocalWrite | Access::kShared, Access::kRemoteWrite}) {
      const Scribbled shared = scribbled_write(access, true, size);
      EXPECT_TRUE(shared.right) << size;
      EXPECT_EQ(shared.in_place, 0u);
    }
  }
}

TEST(IwarpQueuePair, OnlySharedMemoryIsCopiedAndOnlyForAChecksum) {
  EXPECT_EQ(scribbled_write(Access::kLocalWrite, true, 1 << 20).in_place, size_t{1} << 20);
  EXPECT_EQ(scribbled_write(Access::kLocalWrite | Access::kShared, false, 1 << 20).in_place, size_t{1} << 20);
}

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
