// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/unit/initiator/file/data_path_fixture.h"

namespace pnfsrdma::initiator {
namespace {

// The same over real sockets: what only shows when completions take their time.
class IwarpTest : public DataPathTest {
 protected:
  IwarpTest() : DataPathTest(true) {}
  void SetUp() override { make_file(4 << 20); }

  void hammer(int rounds, const std::function<void()>& meanwhile) {
    std::atomic<bool> stop = false;
    std::atomic<int> failed = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        auto own = path->buffers().take();
        ErrorCursor mine = file->error_cursor();
        for (int round = 0; !stop; ++round) {
          const auto seed = static_cast<uint8_t>(round);
          const uint64_t offset = uint64_t(t) * (1 << 20) + (round % 8) * 131072;
          const BufferSlice slice = (*own)->slice(0, 131072);
          for (size_t i = 0; i < slice.size(); ++i) slice.data()[i] = pattern(offset + i, seed);
          if (!file->write(offset, slice)) ++failed;
          std::memset(slice.data(), 0, slice.size());
          if (!file->read(offset, slice) || !holds(slice.data(), offset, slice.size(), seed)) ++failed;
          if (round % 4 == 0 && !file->fsync(mine)) ++failed;
        }
      });
    }
    for (int i = 0; i < rounds; ++i) {
      std::this_thread::sleep_for(Milliseconds(5));
      meanwhile();
    }
    stop = true;
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(failed, 0);
  }
};

TEST_F(IwarpTest, WritesReadsAndFlushesGoOverTheSocket) {
  write(12'345, 1 << 20, 1);
  expect_read(12'345, 1 << 20, 1);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(brick.persists, 1);
  EXPECT_EQ(channel.reads + channel.writes, 0);
  ASSERT_EQ(path->devices().size(), 1u);
  EXPECT_EQ(path->devices()[0].transport, "iwarp");
}

TEST_F(IwarpTest, NativeFlushIsOneRoundTripWithoutTheMds) {
  brick.native_flush = true;
  write(0, 4096, 1);
  ASSERT_TRUE(file->settle());
  const int before = channel.calls;
  write(0, 4096, 2);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(channel.calls, before);
  EXPECT_EQ(path->statistics().flushes_native.value(), 1u);
}

// A WRITE that is complete has been placed: whoever hears of it by another connection finds it.
TEST_F(IwarpTest, ASignalOverANewConnectionIsNotAheadOfWhatTheOldOneWrote) {
  constexpr size_t kLength = 256 << 10;
  write(0, kLength, 0);
  for (uint8_t round = 1; round <= 40; ++round) {
    write(0, kLength, round);
    brick.cut_connection();
    const auto watched = file->watch({0, kLength});
    ASSERT_TRUE(watched);
    ASSERT_TRUE(file->signal({0, kLength}, round, cursor));
    auto event = (*watched)->next();
    for (int i = 0; i < 500 && !(event && event->value == round); ++i) {
      std::this_thread::sleep_for(Milliseconds(2));
      if (auto more = (*watched)->next()) event = more;
    }
    ASSERT_TRUE(event);
    EXPECT_TRUE(holds(brick.memory(), 0, kLength, round)) << int(round);
  }
}

TEST_F(IwarpTest, ManyThreadsShareOneConnection) {
  hammer(40, [] {});
  EXPECT_EQ(brick.connections, 1);
}

TEST_F(IwarpTest, ConnectionsThatDieUnderIoLoseNothing) {
  hammer(15, [this] { brick.cut_connection(); });
}

TEST_F(IwarpTest, RecallsUnderIoNeverCutTheConnection) {
  int i = 0;
  hammer(30, [&] {
    const CallbackAnswer answer =
        recall(uint64_t(i % 4) << 20, i % 3 == 0 ? UINT64_MAX : 1 << 20, channel.recall_stateid());
    if (answer.then) answer.then();
    ++i;
  });
  EXPECT_EQ(brick.connections, 1);
  EXPECT_GE(path->statistics().layoutreturns.value(), 3u);
}

TEST_F(IwarpTest, ABrickThatHangsIsGivenUpAfterTheTimeout) {
  options_now.io_timeout = Milliseconds(200);
  options_now.connect_timeout = Milliseconds(200);
  make_file(1 << 20);
  // A busy machine may need more than one of these short connects.
  for (int i = 0; i < 100 && path->statistics().rdma_writes.value() == 0; ++i) {
    write(0, 4096, 1);
    std::this_thread::sleep_for(Milliseconds(10));
  }
  ASSERT_GT(path->statistics().rdma_writes.value(), 0u);
  const int before = channel.writes;
  const auto lock = brick.hang();
  std::this_thread::sleep_for(Milliseconds(60));  // its wait has ended by then
  const auto begin = clock.now();
  // Through the MDS in the end.
  write(0, 4096, 2);
  EXPECT_LT(clock.now() - begin, std::chrono::seconds(4));
  EXPECT_EQ(channel.writes, before + 1);
}

}  // namespace
}  // namespace pnfsrdma::initiator
