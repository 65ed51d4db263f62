// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/unit/initiator/file/data_path_fixture.h"

// Durable writes that go out together, with one flush behind all of them.
namespace pnfsrdma::initiator {
namespace {

using Events = std::vector<std::string>;

class FlushChainTest : public DataPathTest {
 protected:
  static constexpr size_t kRange = 64;
  static constexpr uint64_t kStep = 4096;

  void SetUp() override {
    options_now.flush_after = Milliseconds(0);
    make_file(4 << 20);
    ready();
  }
  // Connected, under a layout to write, nothing left to flush or commit.
  void ready() {
    for (uint64_t at = 0; at < 4 << 20; at += 1 << 20) write(at, 1 << 20, 0);
    ASSERT_TRUE(file->fsync(cursor));
    ASSERT_TRUE(file->settle());
    events.take();
    losses = file->losses_from_now();
  }
  void use_native_flush() {
    brick.native_flush = true;
    brick.cut_connection();
    ready();
  }
  BufferSlice range(size_t index, uint64_t offset, uint8_t seed) {
    BufferSlice slice = buffer->slice(index * kRange, kRange);
    for (size_t i = 0; i < kRange; ++i) slice.data()[i] = pattern(offset + i, seed);
    return slice;
  }
  bool start(PendingIo& io, size_t index, uint64_t offset, uint8_t seed, FlushChains& chains) {
    return file->start_write(io, offset, range(index, offset, seed), Stability::kDataSync, nullptr,
                             Doorbell::kLater, &chains);
  }
  // All of them, `step` bytes apart.
  void start_all(std::span<PendingIo> ios, uint8_t seed, uint64_t step = kStep) {
    FlushChains chains = path->flush_chains();
    for (size_t i = 0; i < ios.size(); ++i) ASSERT_TRUE(start(ios[i], i, i * step, seed, chains));
  }
  void expect_done(PendingIo& io) {
    for (const SteadyTime until = steady_now() + std::chrono::seconds(20); !io.is_complete();) {
      ASSERT_LT(steady_now(), until);
      path->progress();
      std::this_thread::yield();
    }
    const auto moved = file->finish(io);
    ASSERT_TRUE(moved) << moved.error().to_string();
    EXPECT_EQ(*moved, kRange);
  }
  void expect_all_done(std::span<PendingIo> ios, uint8_t seed, uint64_t step = kStep) {
    path->ring();
    for (PendingIo& io : ios) expect_done(io);
    for (size_t i = 0; i < ios.size(); ++i)
      EXPECT_TRUE(holds(brick.memory() + i * step, i * step, kRange, seed)) << i;
  }
  static Events one_message(size_t count, uint64_t step = kStep) {
    std::string event = "persist";
    for (size_t i = 0; i < count; ++i) event += " " + std::to_string(i * step) + "+" + std::to_string(kRange);
    return {event};
  }
  uint64_t flushes() {
    return path->statistics().flushes_native.value() + path->statistics().flushes_commit_message.value();
  }

  ErrorCursor losses;
};

TEST_F(FlushChainTest, ManyRangesHaveOneCommitMessageBehindThem) {
  std::array<PendingIo, 16> ios;
  const uint64_t before = flushes();
  start_all(ios, 1);
  expect_all_done(ios, 1);
  EXPECT_EQ(events.take(), one_message(16));
  EXPECT_EQ(flushes(), before + 1);
  EXPECT_TRUE(file->is_durable(losses));
  EXPECT_EQ(path->devices()[0].in_flight, 0u);
}

TEST_F(FlushChainTest, ManyRangesThatAreNearHaveOneNativeFlushBehindThem) {
  use_native_flush();
  std::array<PendingIo, 16> ios;
  const uint64_t before = path->statistics().flushes_native.value();
  start_all(ios, 1);
  expect_all_done(ios, 1);
  EXPECT_EQ(events.take(), Events{"flush"});
  EXPECT_EQ(path->statistics().flushes_native.value(), before + 1);
  EXPECT_TRUE(file->is_durable(losses));
}

TEST_F(FlushChainTest, RangesThatAreFarApartAreNamedInOneMessageInstead) {
  use_native_flush();
  std::array<PendingIo, 16> ios;
  start_all(ios, 1, 128 << 10);
  expect_all_done(ios, 1, 128 << 10);
  EXPECT_EQ(events.take(), one_message(16, 128 << 10));
  EXPECT_TRUE(file->is_durable(losses));
}

TEST_F(FlushChainTest, FarApartAndWithoutCommitMessagesEachFlushesItself) {
  channel.flush_methods = nfs4::kFlushNative;
  brick.native_flush = true;
  build(options_now, 4 << 20);
  ready();
  std::array<PendingIo, 3> ios;
  start_all(ios, 1, 1 << 20);
  expect_all_done(ios, 1, 1 << 20);
  EXPECT_EQ(events.take(), Events(3, "flush"));
  EXPECT_TRUE(file->is_durable(losses));
}

TEST_F(FlushChainTest, WithoutAnyFlushOfTheBricksTheMdsFlushesBehindIt) {
  channel.flush_methods = nfs4::kFlushLayoutCommit;
  build(options_now, 4 << 20);
  ready();
  std::array<PendingIo, 3> ios;
  start_all(ios, 1);
  expect_all_done(ios, 1);
  EXPECT_FALSE(file->is_durable(losses));
  EXPECT_TRUE(file->fdatasync(losses));
}

TEST_F(FlushChainTest, NoneIsCompleteBeforeTheFlushIsAnswered) {
  std::array<PendingIo, 4> ios;
  auto held = brick.hang();
  std::this_thread::sleep_for(Milliseconds(60));
  start_all(ios, 1);
  path->ring();
  for (const SteadyTime until = steady_now() + Milliseconds(100); steady_now() < until;) path->progress();
  for (PendingIo& io : ios) EXPECT_FALSE(io.is_complete());
  EXPECT_TRUE(holds(brick.memory(), 0, kRange, 1)) << "it has arrived";
  held.unlock();
  expect_all_done(ios, 1);
}

TEST_F(FlushChainTest, ARecallWaitsForItsFlush) {
  PendingIo io;
  std::atomic<bool> returned = false;
  std::thread recalls;
  {
    FlushChains chains = path->flush_chains();
    ASSERT_TRUE(start(io, 0, 0, 1, chains));
    path->ring();
    recalls = std::thread([&] {
      recall(0, UINT64_MAX, channel.recall_stateid()).then();
      returned = true;
    });
    std::this_thread::sleep_for(Milliseconds(100));
    EXPECT_FALSE(returned);
  }
  path->ring();
  recalls.join();
  expect_done(io);
  EXPECT_EQ(events.take()[0], one_message(1)[0]);
}

TEST_F(FlushChainTest, WhatIsWrittenAndNotFlushedIsNotCalledDurable) {
  brick.unanswered_persists = 1;
  std::array<PendingIo, 4> ios;
  start_all(ios, 1);
  expect_all_done(ios, 1);
  EXPECT_FALSE(file->is_durable(losses));
  ASSERT_TRUE(file->fdatasync(losses));
  EXPECT_TRUE(file->is_durable(losses));
  EXPECT_EQ(path->statistics().lost_writes.value(), 0u);
}

TEST_F(FlushChainTest, AnAnswerUnderAnotherVerifierIsALossForEach) {
  std::array<PendingIo, 4> ios;
  std::array<ErrorCursor, 4> each;
  each.fill(file->losses_from_now());
  brick.set_verifier(77);
  start_all(ios, 1);
  path->ring();
  for (PendingIo& io : ios) expect_done(io);
  for (ErrorCursor& one : each) EXPECT_FALSE(file->fdatasync(one));
}

TEST_F(FlushChainTest, AFlushThatFailsIsALossForEach) {
  std::array<PendingIo, 4> ios;
  std::array<ErrorCursor, 4> each;
  each.fill(file->losses_from_now());
  brick.fail_flush(78);
  start_all(ios, 1);
  path->ring();
  for (PendingIo& io : ios) expect_done(io);
  for (ErrorCursor& one : each) EXPECT_FALSE(file->fdatasync(one));
}

TEST_F(FlushChainTest, AConnectionThatDiesInBetweenCostsNothing) {
  std::array<PendingIo, 8> ios;
  {
    FlushChains chains = path->flush_chains();
    for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(start(ios[i], i, i * kStep, 1, chains));
    path->ring();
    brick.cut_connection();
    for (size_t i = 4; i < 8; ++i) {
      if (!start(ios[i], i, i * kStep, 1, chains)) {
        ASSERT_TRUE(file->write(i * kStep, range(i, i * kStep, 1), Stability::kDataSync));
        ASSERT_TRUE(file->start_read(ios[i], i * kStep, range(i, i * kStep, 1)));
      }
    }
  }
  expect_all_done(ios, 1);
  EXPECT_TRUE(file->fdatasync(losses));
  EXPECT_EQ(path->statistics().lost_writes.value(), 0u);
}

TEST_F(FlushChainTest, ManyMoreThanCreditsAreUnderWayAndOneWithoutRoomSaysSo) {
  std::vector<std::unique_ptr<PendingIo>> started;
  auto held = brick.hang();
  std::this_thread::sleep_for(Milliseconds(60));
  auto io = std::make_unique<PendingIo>();
  {
    FlushChains chains = path->flush_chains();
    // There is one answer for all, and that is missing.
    while (started.size() < 300 && start(*io, started.size(), started.size() * kStep, 3, chains)) {
      started.push_back(std::move(io));
      io = std::make_unique<PendingIo>();
    }
  }
  path->ring();
  EXPECT_GT(started.size(), size_t{4} * brick::kSessionCredits);
  EXPECT_FALSE(io->is_complete());
  held.unlock();
  for (const auto& one : started) expect_done(*one);
  EXPECT_TRUE(file->is_durable(losses));
  EXPECT_EQ(path->devices()[0].in_flight, 0u);
}

TEST_F(FlushChainTest, WithoutAMessageLeftANativeFlushIsStillShared) {
  use_native_flush();
  auto held = brick.hang();
  std::this_thread::sleep_for(Milliseconds(60));
  // As many chains as messages may be unanswered, each of ranges that need one.
  std::array<std::array<PendingIo, 2>, brick::kSessionCredits> far;
  for (auto& ios : far) start_all(ios, 1, 1 << 20);
  path->ring();
  std::array<PendingIo, 4> near;
  const uint64_t before = path->statistics().flushes_native.value();
  start_all(near, 1);
  path->ring();
  EXPECT_EQ(path->statistics().flushes_native.value(), before + 1);
  held.unlock();
  for (auto& ios : far) expect_all_done(ios, 1, 1 << 20);
  expect_all_done(near, 1);
  EXPECT_TRUE(file->is_durable(losses));
}

TEST_F(FlushChainTest, OneThatNothingJoinsLeavesNothingBehind) {
  recall(0, UINT64_MAX, channel.recall_stateid()).then();
  PendingIo io;
  {
    FlushChains chains = path->flush_chains();
    EXPECT_FALSE(start(io, 0, 0, 1, chains));
  }
  path->ring();
  EXPECT_EQ(path->devices()[0].in_flight, 0u);
  EXPECT_FALSE(file->inside().fabric.completions.any());
}

TEST_F(FlushChainTest, ALargeWriteFlushesItself) {
  PendingIo large, small;
  {
    FlushChains chains = path->flush_chains();
    ASSERT_TRUE(start(small, 0, 0, 1, chains));
    auto memory = *path->make_buffer(2 << 20);
    ASSERT_TRUE(file->start_write(large, 1 << 20, memory->slice(0, 2 << 20), Stability::kDataSync, nullptr,
                                  Doorbell::kLater, &chains));
    path->ring();
    while (!large.is_complete()) path->progress();
    EXPECT_TRUE(file->finish(large));
    EXPECT_FALSE(small.is_complete());
  }
  path->ring();
  expect_done(small);
}

// Threads whose chains share a connection, which dies now and then.
TEST_F(FlushChainTest, ManyThreadsHaveTheirChainsOnOneConnection) {
  constexpr int kThreads = 3, kRounds = 40;
  constexpr size_t kEach = 8;
  std::atomic<int> wrong = 0, running = kThreads;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto memory = *path->make_buffer(kEach * kRange);
      std::array<PendingIo, kEach> ios;
      std::array<bool, kEach> begun;
      for (int round = 0; round < kRounds; ++round) {
        ErrorCursor own = file->losses_from_now();
        {
          FlushChains chains = path->flush_chains();
          for (size_t i = 0; i < kEach; ++i) {
            const uint64_t at = (size_t(t) * kEach + i) * kStep;
            const BufferSlice slice = memory->slice(i * kRange, kRange);
            std::memset(slice.data(), round + t, kRange);
            begun[i] = file->start_write(ios[i], at, slice, Stability::kDataSync, nullptr, Doorbell::kLater,
                                         &chains);
            if (!begun[i] && !file->write(at, slice, Stability::kDataSync)) ++wrong;
          }
        }
        path->ring();
        for (size_t i = 0; i < kEach; ++i) {
          while (begun[i] && !ios[i].is_complete()) path->progress();
          if (begun[i] && !file->finish(ios[i])) ++wrong;
        }
        if (!file->is_durable(own) && !file->fdatasync(own)) ++wrong;
        for (size_t i = 0; i < kEach; ++i) {
          if (brick.memory()[(size_t(t) * kEach + i) * kStep] != std::byte(round + t)) ++wrong;
        }
      }
      --running;
    });
  }
  while (running > 0) {
    std::this_thread::sleep_for(Milliseconds(20));
    brick.cut_connection();
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(path->statistics().lost_writes.value(), 0u);
}

}  // namespace
}  // namespace pnfsrdma::initiator
