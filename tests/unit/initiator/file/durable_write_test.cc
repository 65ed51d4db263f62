// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/unit/initiator/file/data_path_fixture.h"

// A WRITE that takes its flush along (O_DSYNC), and the fdatasync behind it that finds little or nothing to do.
namespace pnfsrdma::initiator {
namespace {

using Events = std::vector<std::string>;

class DurableWriteTest : public DataPathTest {
 protected:
  void SetUp() override {
    make_file(1 << 20);
    ready();
  }
  // Connected, under a layout, nothing left to tell.
  void ready() {
    write(0, 4096, 1);
    ASSERT_TRUE(file->fsync(cursor));
    ASSERT_TRUE(file->settle());
    begin();
  }
  void begin() {
    events.take();
    calls_before_ = channel.calls;
    round_trips_before_ = path->statistics().rdma_round_trips.value();
  }
  Result<> write_durably(uint64_t offset, size_t length, uint8_t seed) {
    TRY_ASSIGN(const size_t written, file->write(offset, filled(offset, length, seed), Stability::kDataSync));
    EXPECT_EQ(written, length);
    return file->fdatasync(cursor);
  }
  int mds_calls() const { return channel.calls - calls_before_; }
  uint64_t round_trips() const { return path->statistics().rdma_round_trips.value() - round_trips_before_; }

 private:
  int calls_before_ = 0;
  uint64_t round_trips_before_ = 0;
};

TEST_F(DurableWriteTest, AnOverwriteIsOneRoundTripWithTheCommitMessageBehindIt) {
  ASSERT_TRUE(write_durably(4096, 4096, 2));
  EXPECT_EQ(events.take(), Events{"persist 4096+4096"});
  EXPECT_EQ(round_trips(), 1u);
  EXPECT_EQ(mds_calls(), 0);
  EXPECT_TRUE(holds(brick.memory() + 4096, 4096, 4096, 2));
  begin();
  write(4096, 4096, 3);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(round_trips(), 2u) << "written, then flushed";
}

TEST_F(DurableWriteTest, AnOverwriteIsOneRoundTripWithANativeFlushBehindIt) {
  brick.native_flush = true;
  brick.cut_connection();
  ready();
  ASSERT_TRUE(write_durably(4096, 4096, 2));
  EXPECT_EQ(events.take(), Events{"flush"});
  EXPECT_EQ(round_trips(), 1u);
  EXPECT_EQ(mds_calls(), 0);
}

TEST_F(DurableWriteTest, WhoSyncsEachWriteHasItInOneRoundTripSoon) {
  // ready() was the first of four.
  for (int i = 0; i < 10; ++i) {
    write(4096, 4096, 2);
    ASSERT_TRUE(file->fdatasync(cursor));
  }
  EXPECT_EQ(round_trips(), 3u * 2 + 7);
  EXPECT_EQ(events.take(), Events(10, "persist 4096+4096"));
  EXPECT_TRUE(holds(brick.memory() + 4096, 4096, 4096, 2));
  // No more when two writes come in a row.
  write(4096, 4096, 3);
  begin();
  write(8192, 4096, 3);
  EXPECT_EQ(events.take(), Events{});
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"persist 8192+4096"});
}

TEST_F(DurableWriteTest, AppendsToo) {
  const auto at = file->append(filled(1 << 20, 4096, 2), Stability::kDataSync);
  ASSERT_TRUE(at);
  EXPECT_EQ(*at, 1u << 20);
  events.take();
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"layoutcommit size=1052672"});
}

TEST_F(DurableWriteTest, GrowthCostsALayoutcommitMore) {
  write(1 << 20, 4096, 1);  // has the layout
  ASSERT_TRUE(file->fdatasync(cursor));
  begin();
  ASSERT_TRUE(write_durably((1 << 20) + 4096, 4096, 2));
  EXPECT_EQ(events.take(), (Events{"persist 1052672+4096", "layoutcommit size=1056768"}));
  EXPECT_EQ(round_trips(), 1u);
  EXPECT_EQ(mds_calls(), 1);
}

TEST_F(DurableWriteTest, WhatOthersWroteAndNobodyFlushedIsStillFlushed) {
  write(8192, 4096, 2);
  ASSERT_TRUE(file->write(4096, filled(4096, 4096, 3), Stability::kDataSync));
  events.take();
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"persist 8192+4096"});
}

TEST_F(DurableWriteTest, WithNeitherMethodTheMdsFlushesBehindIt) {
  channel.flush_methods = nfs4::kFlushLayoutCommit;
  build(quick_options(), 1 << 20);
  ready();
  ASSERT_TRUE(write_durably(4096, 4096, 2));
  EXPECT_EQ(events.take(), (Events{"layoutcommit persist", "persist"}));
}

TEST_F(DurableWriteTest, AnAnswerUnderAnotherVerifierIsALossSaidOnce) {
  ErrorCursor second = file->error_cursor();
  brick.set_verifier(77);
  const Result<> outcome = write_durably(4096, 4096, 2);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().number(), EIO);
  EXPECT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(file->fsync(second).error().number(), EIO);
  EXPECT_EQ(path->statistics().lost_writes.value(), 1u);
  EXPECT_TRUE(write_durably(4096, 4096, 3)) << "under the verifier of a new connection";
}

TEST_F(DurableWriteTest, AFlushThatFailsIsEio) {
  brick.fail_flush(78);
  const Result<> outcome = write_durably(4096, 4096, 2);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().number(), EIO);
  EXPECT_TRUE(write_durably(4096, 4096, 3));
}

TEST_F(DurableWriteTest, AConnectionThatDiesBeforeTheAnswerIsFlushedOnTheNextOne) {
  brick.unanswered_persists = 1;
  const int persists = brick.persists;
  ASSERT_TRUE(write_durably(4096, 4096, 2));
  EXPECT_GE(brick.persists, persists + 2);
  EXPECT_TRUE(holds(brick.memory() + 4096, 4096, 4096, 2));
  EXPECT_EQ(path->statistics().lost_writes.value(), 0u);
  EXPECT_EQ(path->statistics().reconnects.value(), 1u);
}

TEST_F(DurableWriteTest, ALossIsToldToEachThatWasUnderWayWhoeverHasHeardOfIt) {
  ErrorCursor first = file->losses_from_now(), second = file->losses_from_now();
  ASSERT_TRUE(file->write(0, filled(0, 4096, 2)));
  ASSERT_TRUE(file->write(4096, filled(4096, 4096, 2)));
  brick.set_verifier(77);
  EXPECT_FALSE(file->fdatasync(first));
  EXPECT_FALSE(file->is_durable(second));
  EXPECT_FALSE(file->fdatasync(second)) << "nothing is left to be flushed, and it is not there";
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO) << "they have taken no news from the open file";
  const ErrorCursor behind = file->losses_from_now();
  EXPECT_TRUE(file->is_durable(behind));
}

TEST_F(DurableWriteTest, AVerifierThatChangesWithTheConnectionIsALoss) {
  brick.unanswered_persists = 1;
  // It has arrived, so it is not written again; its flush has no answer.
  ASSERT_TRUE(file->write(4096, filled(4096, 4096, 2), Stability::kDataSync));
  ASSERT_EQ(path->statistics().replays.value(), 0u);
  brick.set_verifier(79);
  brick.cut_connection();
  const Result<> outcome = file->fdatasync(cursor);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().number(), EIO);
}

TEST_F(DurableWriteTest, ADeadConnectionIsReplacedAndTheWriteDurable) {
  brick.cut_connection();
  ASSERT_TRUE(write_durably(4096, 4096, 2));
  EXPECT_TRUE(holds(brick.memory() + 4096, 4096, 4096, 2));
  EXPECT_TRUE(file->fdatasync(cursor));
}

TEST_F(DurableWriteTest, BehindAClosedGateItGoesThroughTheMdsAndIsDurableAtOnce) {
  recall(0, UINT64_MAX, channel.recall_stateid()).then();
  channel.refuse_layoutgets({nfs4::Status::kLayoutTryLater, nfs4::Status::kLayoutTryLater});
  const int writes = channel.writes, commits = channel.commits;
  ASSERT_TRUE(write_durably(4096, 4096, 2));
  EXPECT_EQ(channel.writes, writes + 1);
  EXPECT_EQ(channel.commits, commits);
}

TEST_F(DurableWriteTest, ManyAtOnceWaitForCreditsAndAreAllFlushed) {
  constexpr int kThreads = 12;
  constexpr int kTurns = 40;
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < kThreads; ++i) buffers.push_back(*path->make_buffer(kBufferSize));
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const BufferSlice mine = buffers[static_cast<size_t>(i)]->slice(0, 4096);
      for (int turn = 0; turn < kTurns; ++turn) {
        std::memset(mine.data(), turn + i, 4096);
        if (!file->write(static_cast<uint64_t>(i) * 4096, mine, Stability::kDataSync)) ++failed;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(brick.connections, 1);
  EXPECT_EQ(round_trips(), uint64_t{kThreads * kTurns});
  EXPECT_FALSE(file->inside().dirty.anything_unflushed());
}

}  // namespace
}  // namespace pnfsrdma::initiator
