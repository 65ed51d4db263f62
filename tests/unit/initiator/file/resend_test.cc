// SPDX-License-Identifier: Apache-2.0
#include <future>
#include <thread>

#include "tests/unit/initiator/file/data_path_fixture.h"

// What went through the MDS and was not committed when that was started again is written again.
namespace pnfsrdma::initiator {
namespace {

class ResendTest : public DataPathTest {
 protected:
  void SetUp() override {
    options_now.layouts = false;
    build(options_now);
    write_first();
  }

  // It is durable at once: what the tests write behind it is not.
  void write_first() { write(0, 1, 1); }
  // An MDS that has lost what it had not committed.
  void lose_unstable() {
    std::memset(brick.memory(), 0, FakeBrick::kBytes);
    ++channel.write_verifier;
  }
  // The new server is asked for the size before anything was written again.
  void show_shorter_file() {
    const auto quiet = channel.quiet();
    channel.size = 0;
    path->layouts_lost();
    const uint64_t before = file->size();
    file->server_size(0, file->local_version(), clock.now());
    EXPECT_EQ(file->size(), before);
  }
  void expect_file(uint64_t offset, size_t length, uint8_t seed) {
    EXPECT_TRUE(holds(brick.memory() + offset, offset, length, seed)) << "seed " << int(seed);
  }
  uint64_t resent() const { return path->statistics().resent_bytes.value(); }
  uint64_t lost() const { return path->statistics().lost_writes.value(); }
};

TEST_F(ResendTest, FsyncFindsItLostAndWritesItAgainAndCommitsThat) {
  write(0, 300'000, 1);
  write(1 << 20, 4096, 2);
  lose_unstable();
  ASSERT_TRUE(file->fsync(cursor));
  expect_file(0, 300'000, 1);
  expect_file(1 << 20, 4096, 2);
  EXPECT_EQ(resent(), 304'096u);
  EXPECT_EQ(lost(), 0u);
  EXPECT_EQ(channel.commits, 2) << "the first one was answered by the new server";
  EXPECT_FALSE(file->inside().dirty.keeps_copies());
  const int calls = channel.calls;
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.calls, calls);
}

TEST_F(ResendTest, TheNewestBytesAreWrittenAgain) {
  write(0, 8192, 1);
  write(4096, 8192, 2);
  lose_unstable();
  write(6000, 100, 3);
  ASSERT_TRUE(file->fsync(cursor));
  expect_file(0, 4096, 1);
  expect_file(4096, 1904, 2);
  expect_file(6000, 100, 3);
  expect_file(6100, 6188, 2);
}

TEST_F(ResendTest, AServerThatIsStartedAgainMeanwhileGetsItOnceMore) {
  write(0, 4096, 1);
  lose_unstable();
  int rounds = 3;
  channel.during_commit = [&] {
    if (rounds-- > 0) lose_unstable();
  };
  ASSERT_TRUE(file->fsync(cursor));
  expect_file(0, 4096, 1);
  EXPECT_EQ(lost(), 0u);
}

TEST_F(ResendTest, WhatTheServerDoesNotTakeAgainIsLostAndSaidOnce) {
  write(0, 4096, 1);
  lose_unstable();
  channel.refuse_writes = nfs4::Status::kNoSpc;
  EXPECT_EQ(file->fsync(cursor).error().number(), ENOSPC);
  channel.refuse_writes = nfs4::Status::kOk;
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(lost(), 1u);
  write(0, 4096, 2);
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(0, 4096, 2);
}

TEST_F(ResendTest, AReaderInTheNextSessionSeesIt) {
  write(0, 4096, 1);
  lose_unstable();
  path->layouts_lost();
  expect_read(0, 4096, 1);
}

TEST_F(ResendTest, WhoTheServerServesInTheNextSessionSeesItOnceItIsSettled) {
  write(0, 4096, 1);
  write(4096, 100, 2);
  lose_unstable();
  show_shorter_file();
  ASSERT_TRUE(file->settle());
  expect_file(0, 4096, 1);
  expect_file(4096, 100, 2);
  const int calls = channel.calls;
  ASSERT_TRUE(file->settle());
  EXPECT_EQ(channel.calls, calls);
}

TEST_F(ResendTest, NorIsTheFileShorterThere) {
  write(0, 4096, 1);
  write(4096, 100, 2);
  lose_unstable();
  show_shorter_file();
  expect_read(0, 4096, 1);
  EXPECT_EQ(file->size(), 4196u);
}

TEST_F(ResendTest, AnAppendGoesBehindIt) {
  write(0, 4096, 1);
  lose_unstable();
  show_shorter_file();
  const auto offset = file->append(filled(4096, 100, 2));
  ASSERT_TRUE(offset);
  EXPECT_EQ(*offset, 4096u);
  expect_file(0, 4096, 1);
  expect_file(4096, 100, 2);
}

TEST_F(ResendTest, WhatWasCommittedIsNotWrittenAgain) {
  write(0, 4096, 1);
  ASSERT_TRUE(file->fdatasync(cursor));
  ++channel.write_verifier;
  write(8192, 4096, 2);
  ++channel.write_verifier;
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(resent(), 4096u);
}

// Others may write there then: a copy would come over theirs.
TEST_F(ResendTest, WhatWasClosedIsCommittedAndNotWrittenAgain) {
  write(0, 4096, 1);
  ASSERT_TRUE(file->close(cursor));
  EXPECT_EQ(channel.commits, 1);
  EXPECT_FALSE(file->inside().dirty.keeps_copies());
  ++channel.write_verifier;
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(resent(), 0u);
  EXPECT_EQ(lost(), 0u);
}

TEST_F(ResendTest, CloseWritesAgainWhatTheServerHasLost) {
  write(0, 4096, 1);
  lose_unstable();
  ASSERT_TRUE(file->close(cursor));
  expect_file(0, 4096, 1);
  EXPECT_EQ(resent(), 4096u);
  EXPECT_EQ(channel.commits, 2);
}

TEST_F(ResendTest, CloseSaysThatNothingWasCommitted) {
  write(0, 4096, 1);
  lose_unstable();
  channel.refuse_writes = nfs4::Status::kNoSpc;
  EXPECT_EQ(file->close(cursor).error().number(), ENOSPC);
}

// Most often it is the only one.
TEST_F(ResendTest, TheFirstWriteAfterACloseIsDurableAtOnce) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(file->close(cursor));
    write(4096, 4096, 1);
    EXPECT_FALSE(file->inside().dirty.keeps_copies());
  }
  write(8192, 4096, 1);
  EXPECT_TRUE(file->inside().dirty.keeps_copies());
  ASSERT_TRUE(file->close(cursor));
  EXPECT_EQ(channel.commits, 1);
}

TEST_F(ResendTest, ASynchronousWriteIsDurableAtOnce) {
  ASSERT_TRUE(file->write(4096, filled(4096, 4096, 2), Stability::kDataSync));
  EXPECT_FALSE(file->inside().dirty.keeps_copies());
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(channel.commits, 0);
}

TEST_F(ResendTest, WhatWasHandedOverIsCommitted) {
  write(0, 4096, 1);
  ASSERT_TRUE(file->hand_over());
  EXPECT_EQ(channel.commits, 1);
  ++channel.write_verifier;
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(resent(), 0u);
}

TEST_F(ResendTest, ATruncationCutsTheCopies) {
  write(0, 8192, 1);
  ASSERT_TRUE(file->truncating(4096));
  channel.size = 4096;
  file->truncated(4096, true);
  lose_unstable();
  ASSERT_TRUE(file->fsync(cursor));
  expect_file(0, 4096, 1);
  EXPECT_EQ(channel.size, 4096u);
  EXPECT_EQ(resent(), 4096u);
}

TEST_F(ResendTest, NothingIsWrittenAgainBesideATruncation) {
  write(0, 8192, 1);
  lose_unstable();
  ASSERT_TRUE(file->truncating(4096));
  auto synced = std::async(std::launch::async, [this] { return file->fsync(cursor); });
  EXPECT_EQ(synced.wait_for(Milliseconds(300)), std::future_status::timeout);
  channel.size = 4096;
  file->truncated(4096, true);
  EXPECT_TRUE(synced.get());
  EXPECT_EQ(channel.size, 4096u) << "written again behind the truncation it would be longer";
}

// The WRITE may wait for this very recall.
TEST_F(ResendTest, ARecallDoesNotWaitForWhoWritesAgain) {
  write(0, 8192, 1);
  lose_unstable();
  ASSERT_TRUE(file->truncating(8192));  // as a WRITE that is under way
  auto synced = std::async(std::launch::async, [this] { return file->fsync(cursor); });
  EXPECT_EQ(synced.wait_for(Milliseconds(300)), std::future_status::timeout);
  EXPECT_EQ(file->inside().flusher.flush(true).error().number(), EAGAIN);
  file->truncated(8192, false);
  EXPECT_TRUE(synced.get());
  expect_file(0, 8192, 1);
}

TEST_F(ResendTest, BeyondTheLimitEachWriteIsStableAtOnce) {
  options_now.unstable_bytes_max = 10'000;
  build(options_now);
  write_first();
  write(0, 4096, 1);
  write(4096, 8192, 2);
  EXPECT_TRUE(file->inside().dirty.keeps_copies());
  const auto extents = file->inside().dirty.extents();
  ASSERT_EQ(extents.size(), 1u);
  EXPECT_EQ(extents.front().end, 4096u);
  std::memset(brick.memory(), 0, 4096);
  ++channel.write_verifier;
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(0, 4096, 1);
  expect_file(4096, 8192, 2);
}

TEST_F(ResendTest, FromHalfOfTheLimitOnItIsFlushedWithoutBeingAsked) {
  options_now.unstable_bytes_max = 16'000;
  build(options_now);
  write_first();
  write(0, 8192, 1);
  for (int i = 0; i < 500 && file->inside().dirty.keeps_copies(); ++i)
    std::this_thread::sleep_for(Milliseconds(10));
  EXPECT_FALSE(file->inside().dirty.keeps_copies());
  EXPECT_EQ(channel.commits, 1);
}

// Writers, and a server that loses what it has not committed again and again: what was written last is there.
TEST_F(ResendTest, WritersBesideALosingServer) {
  constexpr int kWriters = 4, kRounds = 60;
  std::atomic<bool> done = false;
  Bytes medium(kWriters * 4096);
  channel.during_commit = [&] {
    const auto quiet = channel.quiet();
    std::memcpy(medium.data(), brick.memory(), medium.size());
  };
  std::thread server([&] {
    while (!done) {
      {
        const auto quiet = channel.quiet();
        ++channel.write_verifier;
        std::memcpy(brick.memory(), medium.data(), medium.size());
      }
      std::this_thread::sleep_for(Milliseconds(1));
    }
  });
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      auto own = *path->make_buffer(4096);
      ErrorCursor heard = file->error_cursor();
      for (int round = 0; round < kRounds; ++round) {
        std::memset(own->slice(0, 4096).data(), round + 1, 4096);
        ASSERT_TRUE(file->write(static_cast<uint64_t>(i) * 4096, own->slice(0, 4096)));
        if (round % 8 == 7) (void)file->fsync(heard);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  server.join();
  EXPECT_TRUE(file->fsync(cursor));
  for (int i = 0; i < kWriters; ++i) {
    EXPECT_EQ(std::to_integer<int>(brick.memory()[i * 4096]), kRounds);
    EXPECT_EQ(std::to_integer<int>(brick.memory()[i * 4096 + 4095]), kRounds);
  }
}

}  // namespace
}  // namespace pnfsrdma::initiator
