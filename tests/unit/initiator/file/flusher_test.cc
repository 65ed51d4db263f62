// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/unit/initiator/file/data_path_fixture.h"

namespace pnfsrdma::initiator {
namespace {

using Events = std::vector<std::string>;

class FlushTest : public DataPathTest {
 protected:
  void SetUp() override {
    make_file(1 << 20);
    write(0, 4096, 1);
    ASSERT_TRUE(file->fsync(cursor));
    ASSERT_TRUE(file->settle());
    events.take();
    calls_before = channel.calls;
  }
  int mds_calls() const { return channel.calls - calls_before; }
  int calls_before = 0;
};

TEST_F(FlushTest, FdatasyncOfAnOverwriteIsOneCommitMessageAndNoMdsCall) {
  write(4096, 4096, 2);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"persist 4096+4096"});
  EXPECT_EQ(mds_calls(), 0);
}

TEST_F(FlushTest, NeighbouringWritesAreFlushedAsOneRange) {
  for (int i = 0; i < 8; ++i) write(uint64_t(i) * 4096, 4096, 2);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"persist 0+32768"});
}

TEST_F(FlushTest, NothingWrittenIsNothingFlushed) {
  ASSERT_TRUE(file->fsync(cursor));
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{});
  EXPECT_EQ(mds_calls(), 0);
}

TEST_F(FlushTest, FsyncDoesNotWaitForItsMtime) {
  channel.hold_async_commits = true;
  write(4096, 4096, 2);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(events.take(), Events{"persist 4096+4096"});
  EXPECT_EQ(path->statistics().layoutcommits_beside.value(), 2u);
  // A second one comes while the first is under way: told later, not lost.
  write(8192, 4096, 2);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(path->statistics().layoutcommits_beside.value(), 2u);
  channel.hold_async_commits = false;
  channel.release_async_commits();
  ASSERT_TRUE(file->settle());
  const auto last = channel.last_commit();
  EXPECT_EQ(last.offset, 8192u);
  EXPECT_FALSE(last.last_write_offset.has_value());
  EXPECT_FALSE(file->local_attributes().modified.has_value());
}

TEST_F(FlushTest, ANewSizeIsToldBehindTheFlushAndWaitedFor) {
  write(1 << 20, 4096, 2);
  EXPECT_EQ(channel.size, 1u << 20);
  events.take();
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), (Events{"persist 1048576+4096", "layoutcommit size=1052672"}));
  EXPECT_EQ(channel.size, (1u << 20) + 4096);
  // From then on it is an overwrite.
  write(1 << 20, 4096, 3);
  events.take();
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"persist 1048576+4096"});
}

TEST_F(FlushTest, CloseTellsTheMtimeOfWhatWasWritten) {
  write(4096, 4096, 2);
  ASSERT_TRUE(file->close(cursor));
  EXPECT_EQ(events.take(), Events{"layoutcommit"});
  EXPECT_TRUE(channel.last_commit().time_modify.has_value());
  ASSERT_TRUE(file->close(cursor));
  EXPECT_EQ(events.take(), Events{});
}

TEST_F(FlushTest, MtimesOfManyFsyncsKeepTheirDistance) {
  options_now.commit_distance = Milliseconds(60);
  make_file(1 << 20);
  const auto begin = clock.now();
  for (int i = 0; i < 20; ++i) {
    write(uint64_t(i) * 4096, 4096, 2);
    ASSERT_TRUE(file->fsync(cursor));
  }
  const auto distances = static_cast<uint64_t>((clock.now() - begin) / options_now.commit_distance);
  EXPECT_LE(path->statistics().layoutcommits_beside.value(), distances + 2);
  // The last mtime comes by itself.
  for (int i = 0; i < 100 && file->local_attributes().modified; ++i)
    std::this_thread::sleep_for(Milliseconds(10));
  EXPECT_FALSE(file->local_attributes().modified.has_value());
}

TEST_F(FlushTest, NativeFlushIsUsedWhereBothSidesHaveIt) {
  brick.native_flush = true;
  brick.cut_connection();
  write(4096, 4096, 2);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"flush"});
  EXPECT_EQ(path->statistics().flushes_native.value(), 1u);
  EXPECT_EQ(mds_calls(), 0);
}

TEST_F(FlushTest, WithoutBothTheMdsFlushes) {
  channel.flush_methods = nfs4::kFlushLayoutCommit;
  build(quick_options(), 1 << 20);
  write(4096, 4096, 2);
  events.take();
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), (Events{"layoutcommit persist", "persist"}));
}

TEST_F(FlushTest, ManyScatteredWritesAreFlushedInOneMessage) {
  for (int i = 0; i < 200; ++i) write(uint64_t(i) * 5000, 100, 2);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take().size(), 1u);
  EXPECT_EQ(mds_calls(), 0);
}

TEST_F(FlushTest, AnotherVerifierIsEioOncePerOpenFile) {
  ErrorCursor second = file->error_cursor();
  write(4096, 4096, 2);
  brick.set_verifier(77);
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(file->fsync(second).error().number(), EIO);
  EXPECT_TRUE(file->fsync(second));
  ErrorCursor third = file->error_cursor();
  EXPECT_TRUE(file->fsync(third));
  EXPECT_EQ(path->statistics().lost_writes.value(), 1u);
}

// A child that was forked closes the descriptor that its parent will fsync.
TEST_F(FlushTest, ACloseReportsALossAndLeavesItToFsync) {
  ErrorCursor never_synced = file->error_cursor();
  write(4096, 4096, 2);
  brick.set_verifier(77);
  ASSERT_TRUE(file->inside().flusher.flush(false));
  EXPECT_EQ(file->close(cursor).error().number(), EIO);
  EXPECT_EQ(file->close(cursor).error().number(), EIO);
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_TRUE(file->close(cursor));
  EXPECT_EQ(file->close(never_synced).error().number(), EIO);
}

TEST_F(FlushTest, ABrickThatComesBackWithAnotherVerifierHasLostTheUnflushed) {
  write(4096, 4096, 2);
  brick.set_verifier(77);
  brick.cut_connection();
  write(8192, 4096, 2);
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(FlushTest, WhatWasFlushedBeforeIsNotLost) {
  write(4096, 4096, 2);
  ASSERT_TRUE(file->fsync(cursor));
  brick.set_verifier(77);
  brick.cut_connection();
  EXPECT_TRUE(file->fsync(cursor));
  write(8192, 4096, 2);
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(FlushTest, ADeadConnectionUnderAFlushIsMadeAnew) {
  write(4096, 4096, 2);
  brick.cut_connection();
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"persist 4096+4096"});
  EXPECT_EQ(path->statistics().reconnects.value(), 1u);
}

TEST_F(FlushTest, ACommitWithoutAnswerEndsThroughTheMds) {
  write(4096, 4096, 2);
  brick.unanswered_persists = 3;
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(channel.commits, 1);
}

TEST_F(FlushTest, GrowthWhoseLayoutWasRevokedIsWrittenAgainAtClose) {
  write(4096, 4096, 2);
  channel.refuse_layoutcommit(nfs4::Status::kBadLayout);
  EXPECT_TRUE(file->close(cursor));
  write(1 << 20, 4096, 2);
  channel.refuse_layoutcommit(nfs4::Status::kBadLayout);
  EXPECT_EQ(channel.writes, 0);
  EXPECT_TRUE(file->close(cursor));
  EXPECT_EQ(channel.writes, 1);
  EXPECT_EQ(channel.size, (1u << 20) + 4096);
}

TEST_F(FlushTest, AFailedLayoutCommitIsTriedAgain) {
  write(1 << 20, 4096, 2);
  channel.refuse_layoutcommit(nfs4::Status::kNoSpc);
  EXPECT_EQ(file->fsync(cursor).error().number(), ENOSPC);
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.size, (1u << 20) + 4096);
}

TEST_F(FlushTest, ConcurrentFsyncsAllWaitForTheirData) {
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      auto own = path->buffers().take();
      ErrorCursor mine = file->error_cursor();
      for (int i = 0; i < 20; ++i) {
        if (!file->write(uint64_t(t) * 65536 + i * 4096, (*own)->slice(0, 4096)) || !file->fsync(mine))
          ++failed;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  ASSERT_TRUE(file->settle());
}

}  // namespace
}  // namespace pnfsrdma::initiator
