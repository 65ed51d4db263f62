// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <cstdlib>
#include <new>
#include <thread>

#include "tests/unit/initiator/file/data_path_fixture.h"

namespace {
thread_local size_t allocations = 0;
}  // namespace

// For the whole test program: counts, and is otherwise as the one it replaces.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace pnfsrdma::initiator {
namespace {

using Events = std::vector<std::string>;

class PendingIoTest : public DataPathTest {
 protected:
  explicit PendingIoTest(bool over_tcp = false) : DataPathTest(over_tcp) {}
  static constexpr size_t kBlock = 4096;

  void SetUp() override {
    options_now.flush_after = Milliseconds(0);
    make_file(4 << 20);
    ready();
  }
  // Connected, under a layout to write, nothing left to commit.
  void ready() {
    for (uint64_t at = 0; at < 4 << 20; at += 1 << 20) write(at, 1 << 20, 0);
    ASSERT_TRUE(file->fsync(cursor));
    ASSERT_TRUE(file->settle());
    events.take();
  }
  BufferSlice block(size_t index, uint64_t offset, uint8_t seed) {
    BufferSlice slice = buffer->slice(index * kBlock, kBlock);
    for (size_t i = 0; i < kBlock; ++i) slice.data()[i] = pattern(offset + i, seed);
    return slice;
  }
  bool wait_for(PendingIo& io) {
    for (const SteadyTime until = steady_now() + std::chrono::seconds(20); steady_now() < until;) {
      if (io.is_complete()) return true;
      path->progress();
      std::this_thread::yield();
    }
    return false;
  }
  // It has left the gate, with no help from here: that it is complete can be seen a moment later.
  static bool becomes_complete(const PendingIo& io) {
    for (const SteadyTime until = steady_now() + std::chrono::seconds(20); steady_now() < until;) {
      if (io.is_complete()) return true;
      std::this_thread::yield();
    }
    return false;
  }
  void expect_done(PendingIo& io, size_t length = kBlock) {
    ASSERT_TRUE(wait_for(io));
    const auto moved = file->finish(io);
    ASSERT_TRUE(moved) << moved.error().to_string();
    EXPECT_EQ(*moved, length);
  }
  // Nothing is answered while it is held: a message that was sent before it neither.
  std::unique_lock<std::mutex> silence() {
    auto held = brick.hang();
    std::this_thread::sleep_for(Milliseconds(60));
    return held;
  }
  bool gate_is_empty() { return file->inside().cache.drain({0, UINT64_MAX}, steady_now()); }
};

TEST_F(PendingIoTest, ManyAreInFlightAndAreReadBack) {
  std::array<PendingIo, 32> ios;
  const int calls = channel.calls;
  const uint64_t trips = path->statistics().rdma_round_trips.value();
  const uint64_t measured = path->statistics().write_latency.snapshot().count();
  for (size_t i = 0; i < ios.size(); ++i)
    ASSERT_TRUE(file->start_write(ios[i], i * kBlock, block(i, i * kBlock, 1)));
  for (PendingIo& io : ios) expect_done(io);
  EXPECT_TRUE(holds(brick.memory(), 0, ios.size() * kBlock, 1));
  std::memset(buffer->data(), 0, ios.size() * kBlock);
  for (size_t i = 0; i < ios.size(); ++i)
    ASSERT_TRUE(file->start_read(ios[i], i * kBlock, buffer->slice(i * kBlock, kBlock)));
  // In any order.
  for (size_t i = ios.size(); i-- > 0;) expect_done(ios[i]);
  EXPECT_TRUE(holds(buffer->data(), 0, ios.size() * kBlock, 1));
  EXPECT_EQ(channel.calls, calls);
  EXPECT_EQ(path->statistics().rdma_round_trips.value(), trips + 64);
  EXPECT_EQ(path->statistics().write_latency.snapshot().count(), measured + 32);
  EXPECT_TRUE(gate_is_empty());
  EXPECT_FALSE(file->inside().fabric.completions.any());
}

TEST_F(PendingIoTest, WithoutALayoutItMustWaitAndNothingIsLeftBehind) {
  recall(0, UINT64_MAX, channel.recall_stateid()).then();
  PendingIo io;
  EXPECT_FALSE(file->start_read(io, 0, buffer->slice(0, kBlock)));
  EXPECT_FALSE(file->start_write(io, 0, block(0, 0, 1)));
  EXPECT_FALSE(io.is_complete());
  EXPECT_TRUE(gate_is_empty());
  EXPECT_FALSE(file->inside().fabric.completions.any());
  EXPECT_FALSE(file->inside().dirty.anything_unflushed());
  write(0, kBlock, 2);
  ASSERT_TRUE(file->start_read(io, 0, buffer->slice(0, kBlock)));
  expect_done(io);
  EXPECT_TRUE(holds(buffer->data(), 0, kBlock, 2));
}

TEST_F(PendingIoTest, WithoutAConnectionItMustWait) {
  brick.cut_connection();
  PendingIo io;
  const SteadyTime until = steady_now() + std::chrono::seconds(10);
  // It may have begun before the end was noticed; then it is done again.
  while (steady_now() < until && file->start_read(io, 0, buffer->slice(0, kBlock))) expect_done(io);
  expect_read(0, kBlock, 0);
  EXPECT_EQ(brick.connections, 2);
  EXPECT_TRUE(file->start_read(io, 0, buffer->slice(0, kBlock)));
  expect_done(io);
}

TEST_F(PendingIoTest, WhatMustWaitForOtherReasonsThanRoomSaysSo) {
  PendingIo io;
  brick.cut_connection();
  const SteadyTime until = steady_now() + std::chrono::seconds(10);
  while (steady_now() < until && file->start_read(io, 0, buffer->slice(0, kBlock))) expect_done(io);
  EXPECT_FALSE(io.lacked_room());
}

TEST_F(PendingIoTest, MoreThanTheQueuePairTakesMustWait) {
  std::vector<std::unique_ptr<PendingIo>> started;
  auto io = std::make_unique<PendingIo>();
  auto held = silence();
  // The answers of the commit messages are missing.
  while (started.size() < 200 &&
         file->start_write(*io, started.size() * kBlock, block(started.size(), started.size() * kBlock, 3),
                           Stability::kDataSync)) {
    started.push_back(std::move(io));
    io = std::make_unique<PendingIo>();
  }
  EXPECT_GT(started.size(), 0u);
  EXPECT_LE(started.size(), brick::kSessionCredits);
  EXPECT_TRUE(io->lacked_room());
  EXPECT_FALSE(io->is_complete());
  held.unlock();
  for (const auto& one : started) expect_done(*one);
  EXPECT_TRUE(holds(brick.memory(), 0, started.size() * kBlock, 3));
  EXPECT_FALSE(file->inside().dirty.anything_unflushed());
  EXPECT_EQ(path->devices()[0].in_flight, 0u);
}

TEST_F(PendingIoTest, ReadsEndAtTheEndOfTheFileAtOnce) {
  PendingIo io;
  ASSERT_TRUE(file->start_read(io, (4 << 20) - 100, buffer->slice(0, kBlock)));
  expect_done(io, 100);
  ASSERT_TRUE(file->start_read(io, 4 << 20, buffer->slice(0, kBlock)));
  EXPECT_TRUE(io.is_complete());
  EXPECT_FALSE(file->finish_may_wait(io));
  EXPECT_EQ(*file->finish(io), 0u);
}

TEST_F(PendingIoTest, AWriteThatHasToBeDurableIsOneRoundTrip) {
  PendingIo io;
  const uint64_t trips = path->statistics().rdma_round_trips.value();
  ASSERT_TRUE(file->start_write(io, kBlock, block(0, kBlock, 2), Stability::kDataSync));
  expect_done(io);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"persist 4096+4096"});
  EXPECT_EQ(path->statistics().rdma_round_trips.value(), trips + 1);
  brick.native_flush = true;
  brick.cut_connection();
  ready();
  ASSERT_TRUE(file->start_write(io, kBlock, block(0, kBlock, 3), Stability::kDataSync));
  expect_done(io);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"flush"});
}

TEST_F(PendingIoTest, ADurableOverwriteLeavesNothingToSync) {
  PendingIo io;
  EXPECT_TRUE(file->is_durable(cursor));
  ASSERT_TRUE(file->start_write(io, 0, block(0, 0, 5), Stability::kDataSync));
  expect_done(io);
  EXPECT_TRUE(file->is_durable(cursor));
  ASSERT_TRUE(file->start_write(io, 0, block(0, 0, 6)));
  expect_done(io);
  EXPECT_FALSE(file->is_durable(cursor));
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_TRUE(file->is_durable(cursor));
}

TEST_F(PendingIoTest, AListenerHearsOfEachOnce) {
  class Listener final : public PendingIoListener {
   public:
    void completed(PendingIo& io) override {
      EXPECT_TRUE(io.is_complete());
      ++heard;
    }
    std::atomic<int> heard = 0;
  } listener;
  std::array<PendingIo, 8> ios;
  for (size_t i = 0; i < ios.size(); ++i)
    ASSERT_TRUE(
        file->start_write(ios[i], i * kBlock, block(i, i * kBlock, 7), Stability::kUnstable, &listener));
  for (PendingIo& io : ios) expect_done(io);
  EXPECT_EQ(listener.heard, 8);
  // Behind the end there is nothing to read: it hears of that at once.
  ASSERT_TRUE(file->start_read(ios[0], uint64_t{1} << 40, buffer->slice(0, kBlock), &listener));
  EXPECT_EQ(listener.heard, 9);
  expect_done(ios[0], 0);
}

TEST_F(PendingIoTest, FsyncFlushesWhatWasComplete) {
  PendingIo io;
  ASSERT_TRUE(file->start_write(io, kBlock, block(0, kBlock, 2)));
  expect_done(io);
  EXPECT_TRUE(file->inside().dirty.anything_unflushed());
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"persist 4096+4096"});
}

TEST_F(PendingIoTest, WhoSyncsEachWriteHasItInOneRoundTripSoon) {
  const uint64_t trips = path->statistics().rdma_round_trips.value();
  PendingIo io;
  // ready() was the first of four.
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(file->start_write(io, kBlock, block(0, kBlock, 2)));
    expect_done(io);
    ASSERT_TRUE(file->fdatasync(cursor));
  }
  EXPECT_EQ(path->statistics().rdma_round_trips.value(), trips + 3 * 2 + 7);
}

TEST_F(PendingIoTest, SequentialWritesFetchLayoutsAhead) {
  make_file(0);
  PendingIo io;
  for (uint64_t at = 0; at < 7 << 20; at += 1 << 20) {
    const BufferSlice slice = filled(at, 1 << 20, 6);
    if (file->start_write(io, at, slice)) {
      expect_done(io, 1 << 20);
    } else {
      ASSERT_TRUE(file->write(at, slice));
    }
  }
  EXPECT_GE(path->statistics().layoutgets_prefetched.value(), 1u);
  for (uint64_t at = 0; at < 7 << 20; at += 1 << 20) expect_read(at, 1 << 20, 6);
}

TEST_F(PendingIoTest, WhoSleepsIsWokenWhenAThreadThatWaitsTakesTheCompletion) {
  const int fd = path->completion_fd();
  ASSERT_GE(fd, 0);
  std::atomic<bool> stop = false;
  std::thread synchronous([&] {
    auto own = path->buffers().take();
    for (uint64_t i = 0; !stop; ++i) (void)file->read((2 << 20) + i % 64 * kBlock, (*own)->slice(0, kBlock));
  });
  PendingIo io;
  for (int turn = 0; turn < 500; ++turn) {
    if (!file->start_write(io, kBlock, block(0, kBlock, uint8_t(turn)),
                           turn % 4 == 0 ? Stability::kDataSync : Stability::kUnstable))
      continue;
    while (true) {
      path->arm();
      if (io.is_complete()) break;
      pollfd entry{fd, POLLIN, 0};
      ASSERT_EQ(::poll(&entry, 1, 10'000), 1) << "turn " << turn;
      path->progress();
    }
    ASSERT_TRUE(file->finish(io));
  }
  stop = true;
  synchronous.join();
}

TEST_F(PendingIoTest, WhatADeadConnectionDidNotAcknowledgeIsDoneAgain) {
  std::array<PendingIo, 4> ios;
  auto held = silence();
  for (size_t i = 0; i < ios.size(); ++i)
    ASSERT_TRUE(file->start_write(ios[i], i * kBlock, block(i, i * kBlock, 4), Stability::kDataSync));
  brick.cut_connection();
  held.unlock();
  for (PendingIo& io : ios) expect_done(io);
  EXPECT_TRUE(holds(brick.memory(), 0, ios.size() * kBlock, 4));
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(path->statistics().lost_writes.value(), 0u);
  EXPECT_EQ(path->statistics().reconnects.value(), 1u);
}

TEST_F(PendingIoTest, WhatIsAbandonedIsNotDoneAgainAndIsNoHarmToWhatIsWrittenThere) {
  brick.cut_connection();
  network->set_faults({.drop_after_operations = 3});  // hello call, its reply, and the next WRITE
  write(kBlock, kBlock, 1);
  network->set_faults({});
  PendingIo io;
  ASSERT_TRUE(file->start_write(io, 0, block(0, 0, 4)));
  ASSERT_TRUE(wait_for(io));
  ASSERT_TRUE(file->finish_may_wait(io));
  const uint64_t replays = path->statistics().replays.value();
  file->abandon(io);
  EXPECT_EQ(path->statistics().replays.value(), replays);
  // And may be used again.
  write(0, kBlock, 5);
  ASSERT_TRUE(file->start_read(io, 0, buffer->slice(kBlock, kBlock)));
  expect_done(io);
  EXPECT_TRUE(holds(buffer->slice(kBlock, kBlock).data(), 0, kBlock, 5));
  EXPECT_TRUE(holds(brick.memory(), 0, kBlock, 5));
}

TEST_F(PendingIoTest, ARecallDoesNotWaitForTheApplicationToLook) {
  std::array<PendingIo, 2> ios;
  ASSERT_TRUE(file->start_write(ios[0], 0, block(0, 0, 5)));
  ASSERT_TRUE(file->start_read(ios[1], 1 << 20, buffer->slice(8 * kBlock, kBlock)));
  recall(0, UINT64_MAX, channel.recall_stateid()).then();
  EXPECT_EQ(channel.layoutreturns, 1);
  EXPECT_EQ(path->statistics().replays.value(), 0u);
  for (PendingIo& io : ios) {
    ASSERT_TRUE(becomes_complete(io));
    EXPECT_FALSE(file->finish_may_wait(io));
    EXPECT_EQ(*file->finish(io), kBlock);
  }
  // The recall found it in the list of what is to be flushed.
  EXPECT_FALSE(file->inside().dirty.anything_unflushed());
  expect_read(0, kBlock, 5);
}

TEST_F(PendingIoTest, ARecallDrainsWhatIsInFlight) {
  PendingIo io;
  auto held = silence();
  ASSERT_TRUE(file->start_write(io, 0, block(0, 0, 6), Stability::kDataSync));
  std::thread recalling([&] { recall(0, UINT64_MAX, channel.recall_stateid()).then(); });
  std::this_thread::sleep_for(Milliseconds(100));
  EXPECT_EQ(channel.layoutreturns, 0);
  EXPECT_FALSE(io.is_complete());
  held.unlock();
  recalling.join();
  EXPECT_EQ(channel.layoutreturns, 1);
  ASSERT_TRUE(becomes_complete(io));
  EXPECT_EQ(*file->finish(io), kBlock);
  EXPECT_EQ(path->statistics().replays.value(), 0u);
}

TEST_F(PendingIoTest, ATruncationDrainsToo) {
  PendingIo io;
  ASSERT_TRUE(file->start_write(io, 3 << 20, block(0, 3 << 20, 6)));
  const auto operation = file->truncating(2 << 20);
  ASSERT_TRUE(operation && *operation);
  EXPECT_TRUE(becomes_complete(io));
  brick.withdraw(2 << 20, 6 << 20);
  channel.size = 2 << 20;
  file->truncated(2 << 20, true);
  EXPECT_EQ(*file->finish(io), kBlock);
  EXPECT_EQ(file->size(), uint64_t{2} << 20);
}

TEST_F(PendingIoTest, WhatNobodyLooksAtIsCompletedAllTheSame) {
  PendingIo io;
  ASSERT_TRUE(file->start_write(io, 0, block(0, 0, 7)));
  for (int i = 0; i < 500 && !io.is_complete(); ++i) std::this_thread::sleep_for(Milliseconds(10));
  ASSERT_TRUE(io.is_complete());
  EXPECT_EQ(*file->finish(io), kBlock);
}

TEST_F(PendingIoTest, WhatIsNotAnsweredInTimeEndsTheConnectionAlsoIfNobodyLooks) {
  options_now.io_timeout = Milliseconds(300);
  make_file(4 << 20);
  ready();
  const int connections = brick.connections;
  PendingIo io;
  auto held = silence();
  ASSERT_TRUE(file->start_write(io, 0, block(0, 0, 7), Stability::kDataSync));
  for (int i = 0; i < 500 && !io.is_complete(); ++i) std::this_thread::sleep_for(Milliseconds(10));
  held.unlock();
  ASSERT_TRUE(io.is_complete());
  EXPECT_EQ(*file->finish(io), kBlock);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(brick.connections, connections + 1);
}

TEST_F(PendingIoTest, GrowthIsKeptUntilItIsCommitted) {
  const uint64_t end = 4 << 20;
  write(end, kBlock, 1);  // has the layout
  ASSERT_TRUE(file->fsync(cursor));
  PendingIo io;
  ASSERT_TRUE(file->start_write(io, end + kBlock, block(0, end + kBlock, 8)));
  expect_done(io);
  EXPECT_EQ(file->size(), end + 2 * kBlock);
  EXPECT_TRUE(file->inside().kept.covers(end + kBlock, kBlock));
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.size, end + 2 * kBlock);
  EXPECT_FALSE(file->inside().kept.any());
}

TEST_F(PendingIoTest, GrowthIsWrittenAgainWhenItsLayoutIsLost) {
  const uint64_t end = 4 << 20;
  write(end, kBlock, 1);
  ASSERT_TRUE(file->fsync(cursor));
  PendingIo io;
  ASSERT_TRUE(file->start_write(io, end + kBlock, block(0, end + kBlock, 8)));
  expect_done(io);
  brick.withdraw(0, FakeBrick::kBytes);
  std::memset(brick.memory() + channel.size, 0, FakeBrick::kBytes - channel.size);
  channel.forget_layouts();
  path->layouts_lost();
  EXPECT_FALSE(file->start_read(io, 0, buffer->slice(0, kBlock)));
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_TRUE(holds(brick.memory() + end + kBlock, end + kBlock, kBlock, 8));
  EXPECT_EQ(path->statistics().lost_writes.value(), 0u);
}

TEST_F(PendingIoTest, WithoutRoomForCopiesOfGrowthItMustWait) {
  options_now.kept_bytes_max = KeptMemory::kChunkBytes;
  make_file(4 << 20);
  const uint64_t end = 4 << 20;
  channel.hold_async_commits = true;
  write(end, kBlock, 1);
  PendingIo io;
  EXPECT_FALSE(file->start_write(io, end + KeptMemory::kChunkBytes, block(0, 0, 8)));
  EXPECT_TRUE(gate_is_empty());
  channel.hold_async_commits = false;
  channel.release_async_commits();
  ASSERT_TRUE(file->fsync(cursor));
  ASSERT_TRUE(file->start_write(io, end + KeptMemory::kChunkBytes, block(0, 0, 8)));
  expect_done(io);
}

TEST_F(PendingIoTest, AtTheEndOfTheMountItFails) {
  std::array<PendingIo, 2> ios;
  auto held = silence();
  for (PendingIo& io : ios) ASSERT_TRUE(file->start_write(io, 0, block(0, 0, 9), Stability::kDataSync));
  // One has arrived, and only its flush has no answer.
  path->abort();
  held.unlock();
  for (PendingIo& io : ios) {
    ASSERT_TRUE(wait_for(io));
    const auto moved = file->finish(io);
    EXPECT_TRUE(moved || moved.error().number() == ESHUTDOWN);
  }
  EXPECT_FALSE(file->start_write(ios[0], 0, block(0, 0, 9)));
}

TEST_F(PendingIoTest, PiecesOfSeveralSegmentsAreOneIo) {
  channel.segment_bytes = 64 << 10;
  make_file(4 << 20);
  write(0, 512 << 10, 0);
  PendingIo io;
  ASSERT_TRUE(file->start_write(io, 1000, filled(1000, 400'000, 9)));
  expect_done(io, 400'000);
  EXPECT_TRUE(holds(brick.memory() + 1000, 1000, 400'000, 9));
}

// Threads that wait and threads that do not, each in a part of the file of its own.
class Mixture {
 public:
  static constexpr size_t kBlock = 4096;
  static constexpr size_t kInFlight = 4;
  static constexpr int kRounds = 60;
  using Pattern = std::byte (*)(uint64_t offset, uint8_t seed);

  Mixture(DataPath& path, FileIo& file, Pattern pattern) : path_(path), file_(file), pattern_(pattern) {}

  // `meanwhile` is called again and again until all threads are done.
  void run(const std::function<void()>& meanwhile) {
    std::vector<std::thread> threads;
    running_ = 4;
    for (int t = 0; t < 3; ++t) threads.emplace_back([this, t] { asynchronous(t); });
    threads.emplace_back([this] { synchronous(3); });
    while (running_ > 0) meanwhile();
    for (auto& thread : threads) thread.join();
  }

  std::atomic<int> wrong = 0, must_wait = 0;

 private:
  static uint64_t place(int thread, int round, size_t i) {
    return uint64_t(thread) * (512 << 10) + (uint64_t(round) * kInFlight + i) % 128 * kBlock;
  }
  void fill(BufferSlice slice, uint64_t offset, int round) const {
    for (size_t b = 0; b < kBlock; ++b) slice.data()[b] = pattern_(offset + b, uint8_t(round));
  }
  void check(BufferSlice slice, uint64_t offset, int round) {
    for (size_t b = 0; b < kBlock; ++b) {
      if (slice.data()[b] != pattern_(offset + b, uint8_t(round))) return void(++wrong);
    }
  }
  void end(PendingIo& io) {
    while (!io.is_complete()) path_.progress();
    if (file_.finish(io).value_or(0) != kBlock) ++wrong;
  }
  bool begin(PendingIo& io, bool writes, uint64_t offset, BufferSlice slice, Stability stability) {
    if (writes ? file_.start_write(io, offset, slice, stability) : file_.start_read(io, offset, slice))
      return true;
    ++must_wait;
    const auto moved = writes ? file_.write(offset, slice, stability) : file_.read(offset, slice);
    if (moved.value_or(0) != kBlock) ++wrong;
    return false;
  }

  void asynchronous(int thread) {
    auto own = path_.buffers().take();
    std::array<PendingIo, kInFlight> ios;
    std::array<bool, kInFlight> begun;
    for (int turn = 0; turn < 2 * kRounds; ++turn) {
      const int round = turn / 2;
      const bool writes = turn % 2 == 0;
      const Stability stability = round % 8 == 0 ? Stability::kDataSync : Stability::kUnstable;
      for (size_t i = 0; i < kInFlight; ++i) {
        const BufferSlice slice = (*own)->slice(i * kBlock, kBlock);
        const uint64_t offset = place(thread, round, i);
        std::memset(slice.data(), 0, kBlock);
        if (writes) fill(slice, offset, round);
        begun[i] = begin(ios[i], writes, offset, slice, stability);
      }
      for (size_t i = 0; i < kInFlight; ++i) {
        if (begun[i]) end(ios[i]);
        if (!writes) check((*own)->slice(i * kBlock, kBlock), place(thread, round, i), round);
      }
    }
    --running_;
  }

  void synchronous(int thread) {
    auto own = path_.buffers().take();
    ErrorCursor mine = file_.error_cursor();
    const BufferSlice slice = (*own)->slice(0, kBlock);
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t offset = place(thread, round, 0);
      fill(slice, offset, round);
      if (!file_.write(offset, slice)) ++wrong;
      std::memset(slice.data(), 0, kBlock);
      if (!file_.read(offset, slice)) ++wrong;
      check(slice, offset, round);
      if (round % 16 == 0 && !file_.fsync(mine)) ++wrong;
    }
    --running_;
  }

  DataPath& path_;
  FileIo& file_;
  const Pattern pattern_;
  std::atomic<int> running_ = 0;
};

TEST_F(PendingIoTest, ThreadsOfBothKindsAndRecallsAtTheSameTime) {
  Mixture mixture(*path, *file, [](uint64_t offset, uint8_t seed) { return pattern(offset, seed); });
  int turn = 0;
  mixture.run([&] {
    const CallbackAnswer answer = recall(uint64_t(++turn % 4) << 20, 1 << 20, channel.recall_stateid());
    if (answer.then) answer.then();
    std::this_thread::sleep_for(Milliseconds(5));
  });
  EXPECT_EQ(mixture.wrong, 0);
  EXPECT_LT(mixture.must_wait, 2 * 3 * int{Mixture::kInFlight} * Mixture::kRounds);
  EXPECT_EQ(brick.connections, 1);
  EXPECT_EQ(path->statistics().replays.value(), 0u);
  EXPECT_TRUE(gate_is_empty());
}

// Over real sockets: nothing is complete before the brick has served it.
class PendingIoOverTcpTest : public PendingIoTest {
 protected:
  PendingIoOverTcpTest() : PendingIoTest(true) {}
};

TEST_F(PendingIoOverTcpTest, InSteadyStateNothingIsAllocated) {
  std::array<PendingIo, 8> ios;
  const auto rounds = [&](int count) {
    for (int round = 0; round < count; ++round) {
      for (size_t i = 0; i < ios.size(); ++i) {
        const BufferSlice slice = buffer->slice(i * kBlock, kBlock);
        const bool started = (i + round) % 2 == 0 ? file->start_write(ios[i], i * kBlock, slice)
                                                  : file->start_read(ios[i], i * kBlock, slice);
        ASSERT_TRUE(started);
      }
      for (PendingIo& io : ios) {
        ASSERT_TRUE(wait_for(io));
        ASSERT_TRUE(file->finish(io));
      }
    }
  };
  rounds(50);
  const size_t before = allocations;
  EXPECT_GT(before, 0u);
  rounds(200);
  EXPECT_EQ(allocations, before);
}

TEST_F(PendingIoOverTcpTest, WhoSleepsWakesForEachCompletion) {
  const int fd = path->completion_fd();
  ASSERT_GE(fd, 0);
  PendingIo io;
  for (int turn = 0; turn < 200; ++turn) {
    ASSERT_TRUE(file->start_read(io, turn * kBlock, buffer->slice(0, kBlock)));
    while (true) {
      path->arm();
      if (io.is_complete()) break;
      pollfd entry{fd, POLLIN, 0};
      ASSERT_EQ(::poll(&entry, 1, 10'000), 1) << "turn " << turn;
      path->progress();
    }
    ASSERT_TRUE(file->finish(io));
  }
}

TEST_F(PendingIoOverTcpTest, ReadsAndWritesInFlightAtTheEndOfTheConnectionAreDoneAgain) {
  std::array<PendingIo, 16> ios;
  auto held = silence();
  for (size_t i = 0; i < ios.size(); ++i) {
    const uint64_t offset = i * kBlock;
    const bool started =
        i % 2 == 0 ? file->start_write(ios[i], offset, block(i, offset, 9))
                   : file->start_read(ios[i], (1 << 20) + offset, buffer->slice(i * kBlock, kBlock));
    ASSERT_TRUE(started);
  }
  brick.cut_connection();
  held.unlock();
  for (PendingIo& io : ios) expect_done(io);
  for (size_t i = 0; i < ios.size(); ++i) {
    const uint64_t offset = i * kBlock;
    const bool right = i % 2 == 0 ? holds(brick.memory() + offset, offset, kBlock, 9)
                                  : holds(buffer->data() + offset, (1 << 20) + offset, kBlock, 0);
    EXPECT_TRUE(right);
  }
  EXPECT_GE(path->statistics().replays.value(), 1u);
}

TEST_F(PendingIoOverTcpTest, ThreadsOfBothKindsRecallsAndConnectionsThatDieAtTheSameTime) {
  Mixture mixture(*path, *file, [](uint64_t offset, uint8_t seed) { return pattern(offset, seed); });
  int turn = 0;
  mixture.run([&] {
    const CallbackAnswer answer = recall(uint64_t(++turn % 4) << 20, 1 << 20, channel.recall_stateid());
    if (answer.then) answer.then();
    if (turn % 4 == 0) brick.cut_connection();
    std::this_thread::sleep_for(Milliseconds(5));
  });
  EXPECT_EQ(mixture.wrong, 0);
  EXPECT_TRUE(gate_is_empty());
  EXPECT_FALSE(file->inside().fabric.completions.any());
  ASSERT_TRUE(file->fsync(cursor));
}

}  // namespace
}  // namespace pnfsrdma::initiator
