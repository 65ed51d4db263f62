// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/unit/initiator/file/data_path_fixture.h"

namespace pnfsrdma::initiator {
namespace {

using Events = std::vector<std::string>;

class RecallTest : public DataPathTest {
 protected:
  void SetUp() override { make_file(4 << 20); }
};

TEST_F(RecallTest, FlushesThenTellsTheSizeThenReturns) {
  write((4 << 20) - 4096, 8192, 1);
  events.take();
  const CallbackAnswer answer = recall(0, UINT64_MAX, channel.recall_stateid());
  ASSERT_EQ(answer.status, nfs4::Status::kOk);
  EXPECT_EQ(events.take(), Events{});
  answer.then();
  const Events seen = events.take();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen[0].starts_with("persist"));
  EXPECT_EQ(seen[1], "layoutcommit size=4198400");
  EXPECT_EQ(seen[2], "layoutreturn");
  // Afterwards a layout is asked for anew.
  expect_read(0, 4096, 0);
  EXPECT_EQ(channel.reads, 0);
}

TEST_F(RecallTest, IoThatMeetsTheClosedGateGoesThroughTheMds) {
  expect_read(0, 4096, 0);
  const CallbackAnswer answer = recall(0, UINT64_MAX, channel.recall_stateid());
  ASSERT_EQ(answer.status, nfs4::Status::kOk);
  // The recall has not run: nobody waits for it.
  expect_read(0, 4096, 0);
  write(8192, 4096, 3);
  EXPECT_EQ(channel.reads, 1);
  EXPECT_EQ(channel.writes, 1);
  ASSERT_TRUE(file->fsync(cursor));
  answer.then();
  expect_read(8192, 4096, 3);
  EXPECT_EQ(channel.reads, 1);
}

// COMMIT goes on behind the end of the file as the MDS knows it.
TEST_F(RecallTest, FsyncOfGrowthThatMeetsTheClosedGateHasItFlushed) {
  write(4 << 20, 4096, 1);
  events.take();
  const CallbackAnswer answer = recall(0, UINT64_MAX, channel.recall_stateid());
  ASSERT_EQ(answer.status, nfs4::Status::kOk);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(events.take(), (Events{"commit", "persist", "layoutcommit size=4198400"}));
  answer.then();
}

TEST_F(RecallTest, FsyncOnBothSidesOfTheEndThatMeetsTheClosedGateHasAllOfItFlushed) {
  write((4 << 20) - 4096, 8192, 1);
  events.take();
  const CallbackAnswer answer = recall(0, UINT64_MAX, channel.recall_stateid());
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), (Events{"commit", "persist", "layoutcommit size=4198400"}));
  answer.then();
}

// Another client cuts the file: every layout behind the new end is recalled for it.
TEST_F(RecallTest, WhatIsWrittenBehindTheEndThatAnotherClientHasSetIsToldTheServer) {
  write(2 << 20, 4096, 1);
  recall(0, UINT64_MAX, channel.recall_stateid()).then();
  channel.size = 4096;
  write(2 << 20, 4096, 2);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.size, (2u << 20) + 4096);
}

TEST_F(RecallTest, GrowthThatWasWrittenBesideATruncationIsToldTheServer) {
  const auto layout_return = file->truncating(2 << 20);
  ASSERT_TRUE(layout_return && !*layout_return);
  channel.size = 2 << 20;
  write(3 << 20, 4096, 1);
  const uint64_t version = file->truncated(2 << 20, true);
  file->server_size(2 << 20, version, steady_now());
  EXPECT_EQ(file->size(), (3u << 20) + 4096);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.size, (3u << 20) + 4096);
}

TEST_F(RecallTest, GrowthTheServerDidNotTakeBeforeItsReturnIsWrittenAgain) {
  write(0, 4096, 1);
  write(4 << 20, 4096, 1);
  channel.refuse_layoutcommit(nfs4::Status::kIo);
  recall(4 << 20, 1 << 20, channel.recall_stateid()).then();
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.size, (4u << 20) + 4096);
  EXPECT_TRUE(holds(brick.memory() + (4 << 20), 4 << 20, 4096, 1));
  EXPECT_EQ(path->statistics().lost_writes.value(), 0u);
}

// The MDS lets a WRITE wait until everybody who may write behind the end has given his layout back, its own client too.
TEST_F(RecallTest, ALayoutGoesBackWhileGrowthIsWrittenAgain) {
  write(0, 4096, 1);
  write(4 << 20, 4096, 1);
  std::atomic<bool> writing = false, all_back = false;
  channel.during_write = [&] {
    writing = true;
    for (int i = 0; i < 300 && !all_back; ++i) {
      std::this_thread::sleep_for(Milliseconds(10));
      all_back = channel.layoutreturns == 2;
    }
  };
  channel.refuse_layoutcommit(nfs4::Status::kIo);
  recall(4 << 20, 1 << 20, channel.recall_stateid()).then();
  for (int i = 0; i < 300 && !writing; ++i) std::this_thread::sleep_for(Milliseconds(10));
  ASSERT_TRUE(writing);
  recall(0, 1 << 20, channel.recall_stateid()).then();
  EXPECT_EQ(channel.layoutreturns, 2);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_TRUE(all_back);
  EXPECT_EQ(channel.size, (4u << 20) + 4096);
  EXPECT_TRUE(holds(brick.memory(), 0, 4096, 1));
  EXPECT_TRUE(holds(brick.memory() + (4 << 20), 4 << 20, 4096, 1));
  EXPECT_EQ(path->statistics().lost_writes.value(), 0u);
}

TEST_F(RecallTest, GrowthThatWasReturnedForATruncationThatFailsIsWrittenAgain) {
  write(0, 4096, 1);
  write(4 << 20, 4096, 1);
  channel.refuse_layoutcommit(nfs4::Status::kIo);
  const auto operation = file->truncating(4 << 20);
  ASSERT_TRUE(operation && *operation);
  (void)channel.layout_return({}, **operation, nullptr);
  nfs4::LayoutReturnResult returned;
  returned.stateid = channel.stateid();
  file->layout_returned(returned);
  file->truncated(4 << 20, false);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_TRUE(holds(brick.memory() + (4 << 20), 4 << 20, 4096, 1));
}

TEST_F(RecallTest, ASizeThatCouldNotBeLearntIsLearntByTheNextCommit) {
  write(4 << 20, 1 << 20, 1);
  // A layout is granted beside the commit: what the file was before that is not known any more.
  channel.during_layoutcommit = [&] { expect_read(0, 4096, 0); };
  ASSERT_TRUE(file->fdatasync(cursor));
  channel.during_layoutcommit = nullptr;
  const int commits = channel.layoutcommits;
  for (uint64_t i = 0; i < 8; ++i) {
    write((4 << 20) + i * 65536, 4096, 2);
    ASSERT_TRUE(file->fdatasync(cursor));
  }
  EXPECT_LE(channel.layoutcommits, commits + 1);
}

TEST_F(RecallTest, WhatIsNotHeldDoesNotMatch) {
  EXPECT_EQ(recall(0, UINT64_MAX, channel.recall_stateid()).status, nfs4::Status::kNomatchingLayout);
  EXPECT_EQ(path->statistics().recalls_without_match.value(), 1u);
}

TEST_F(RecallTest, ARecallThatMayHaveOvertakenAnOpenIsDelayed) {
  {
    const PendingLayout pending = path->layout_at_open(true);
    EXPECT_EQ(recall(0, UINT64_MAX, channel.recall_stateid()).status, nfs4::Status::kDelay);
  }
  EXPECT_EQ(recall(0, UINT64_MAX, channel.recall_stateid()).status, nfs4::Status::kNomatchingLayout);
}

TEST_F(RecallTest, ARecallThatHasOvertakenALayoutGetIsDelayed) {
  expect_read(0, 4096, 0);
  nfs4::Status seen = nfs4::Status::kOk;
  channel.during_layoutget = [&] {
    // Known + 2: one reply is still to come.
    nfs4::Stateid stateid = channel.stateid();
    stateid.seqid += 2;
    seen = recall(0, UINT64_MAX, stateid).status;
  };
  write(3 << 20, 4096, 1);
  EXPECT_EQ(seen, nfs4::Status::kDelay);
}

TEST_F(RecallTest, OnlyTheRecalledRangeIsReturned) {
  expect_read(0, 1 << 20, 0);
  expect_read(3 << 20, 1 << 20, 0);
  const int gets = channel.layoutgets;
  recall(0, 1 << 20, channel.recall_stateid()).then();
  expect_read(3 << 20, 4096, 0);
  EXPECT_EQ(channel.layoutgets, gets);
  expect_read(0, 4096, 0);
  EXPECT_EQ(channel.layoutgets, gets + 1);
}

// What was granted while the recall was on its way may reach further: what is forgotten here is given back there.
TEST_F(RecallTest, AllThatIsForgottenIsReturned) {
  expect_read(0, 1 << 20, 0);
  recall(4096, 4096, channel.recall_stateid()).then();
  EXPECT_EQ(channel.last_returned, (FileRange{0, 1 << 20}));
  expect_read(0, 4096, 0);
  recall(4096, UINT64_MAX, channel.recall_stateid()).then();
  EXPECT_EQ(channel.last_returned, (FileRange{0, UINT64_MAX}));
}

TEST_F(RecallTest, NothingTouchesTheMemoryAfterTheReturn) {
  // The fake brick kills the handle in LAYOUTRETURN: a late access would cut the connection.
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto own = path->buffers().take();
      uint8_t seed = 0;
      while (!stop) {
        const uint64_t offset = uint64_t(t) * (1 << 20) + (seed % 16) * 65536;
        const BufferSlice slice = (*own)->slice(0, 65536);
        for (size_t i = 0; i < slice.size(); ++i) slice.data()[i] = pattern(offset + i, seed);
        if (!file->write(offset, slice)) ++failed;
        std::memset(slice.data(), 0, slice.size());
        if (!file->read(offset, slice) || !holds(slice.data(), offset, slice.size(), seed)) ++failed;
        ++seed;
      }
    });
  }
  for (int i = 0; i < 40; ++i) {
    const CallbackAnswer answer =
        recall(uint64_t(i % 4) << 20, i % 3 == 0 ? UINT64_MAX : 1 << 20, channel.recall_stateid());
    if (answer.then) answer.then();
    std::this_thread::sleep_for(Milliseconds(2));
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(brick.connections, 1);
  EXPECT_EQ(path->statistics().replays.value(), 0u);
  EXPECT_GE(path->statistics().layoutreturns.value(), 5u);
}

TEST_F(RecallTest, AFileThatShrinksReturnsWhatLiesBeyondFirst) {
  write(0, 1 << 20, 1);
  write(3 << 20, 1 << 20, 1);
  events.take();
  const auto operation = file->truncating((3 << 20) + 100);
  ASSERT_TRUE(operation);
  ASSERT_TRUE(operation->has_value());
  const auto* what = (*operation)->what.get_if<nfs4::LayoutReturnType::kFile>();
  ASSERT_NE(what, nullptr);
  EXPECT_EQ(what->offset, uint64_t{3} << 20);
  const Events seen = events.take();
  ASSERT_FALSE(seen.empty());
  EXPECT_TRUE(seen[0].starts_with("persist"));
  // What the server does.
  brick.withdraw(3 << 20, 5 << 20);
  channel.size = (3 << 20) + 100;
  file->truncated((3 << 20) + 100, true);
  EXPECT_EQ(file->size(), (3u << 20) + 100);
  EXPECT_EQ(*file->read((3 << 20) + 50, buffer->slice(0, 4096)), 50u);
  write(3 << 20, 8192, 2);
  expect_read(3 << 20, 8192, 2);
  EXPECT_EQ(brick.connections, 1);
}

TEST_F(RecallTest, WhileATruncationWaitsAtTheServerItsRecallsAreAnswered) {
  write(0, 4096, 1);
  expect_read(2 << 20, 4096, 0);
  ASSERT_TRUE(file->truncating((1 << 20) + 100).value());
  const nfs4::Stateid returned = channel.recall_stateid();
  EXPECT_EQ(recall(2 << 20, UINT64_MAX, channel.recall_stateid()).status, nfs4::Status::kNomatchingLayout)
      << "sent behind a reply that is still to come";
  file->layout_returned({returned});
  const CallbackAnswer answer = recall(0, 4096, channel.recall_stateid());
  EXPECT_EQ(answer.status, nfs4::Status::kOk);
  answer.then();
  EXPECT_EQ(channel.layoutreturns, 1);
  // Known as returned: a layout may be had again while the SETATTR waits.
  expect_read(0, 4096, 1);
  EXPECT_EQ(channel.reads, 0);
  file->truncated((1 << 20) + 100, true);
}

TEST_F(RecallTest, WhatATruncationHasGivenBackIsNotFetchedAgainBeforeItIsDone) {
  expect_read(3 << 20, 4096, 0);
  ASSERT_TRUE(file->truncating(1 << 20).value());
  file->layout_returned({});
  expect_read(0, 4096, 0);
  EXPECT_EQ(file->inside().cache.held().readable_bytes, uint64_t{1} << 20);
  write(4096, 4096, 1);
  EXPECT_EQ(file->inside().cache.held().writable_bytes, uint64_t{1} << 20);
  EXPECT_EQ(channel.reads + channel.writes, 0);
  file->truncated(1 << 20, true);
}

TEST_F(RecallTest, AFileWhoseGrowthTheServerDoesNotTakeIsNotCut) {
  write(4 << 20, 1 << 20, 1);
  channel.refuse_layoutcommit(nfs4::Status::kNoSpc);
  const auto refused = file->truncating((4 << 20) + 8192);
  ASSERT_FALSE(refused) << "the SETATTR would put zeros in place of what was written";
  EXPECT_EQ(refused.error().number(), ENOSPC);
  EXPECT_EQ(file->size(), 5u << 20);
  expect_read(4 << 20, 1 << 20, 1);
  EXPECT_EQ(channel.reads, 0);
  ASSERT_TRUE(file->truncating((4 << 20) + 8192));
  EXPECT_EQ(channel.size, 5u << 20);
  file->truncated((4 << 20) + 8192, true);
}

TEST_F(RecallTest, AGrowingTruncateReturnsNothing) {
  write(0, 4096, 1);
  const auto operation = file->truncating(uint64_t{64} << 20);
  ASSERT_TRUE(operation);
  EXPECT_FALSE(operation->has_value());
  file->truncated(uint64_t{64} << 20, true);
  EXPECT_EQ(file->size(), uint64_t{64} << 20);
}

nfs4::CallbackLayoutRecallArguments bulk_recall() {
  nfs4::CallbackLayoutRecallArguments arguments;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.what = nfs4::LayoutRecallWhat::make<nfs4::LayoutRecallType::kAll>(xdr::Void{});
  return arguments;
}

TEST_F(RecallTest, ABulkRecallReturnsEverythingOnce) {
  write(0, 4096, 1);
  const nfs4::CallbackLayoutRecallArguments arguments = bulk_recall();
  const CallbackAnswer answer = path->layout_recall(arguments);
  ASSERT_EQ(answer.status, nfs4::Status::kOk);
  answer.then();
  EXPECT_EQ(events.take().back(), "layoutreturn all");
  EXPECT_EQ(path->layout_recall(arguments).status, nfs4::Status::kNomatchingLayout);
}

TEST_F(RecallTest, UntilABulkReturnIsAnsweredNobodyGetsALayoutAndNoGrantIsTakenForDead) {
  make_file(4 << 20);
  write(0, 4096, 1);
  const int layoutgets = channel.layoutgets;
  const uint64_t layout_incarnation = file->inside().cache.incarnation();
  bool asked = false;
  channel.during_bulk_return = [&] {
    asked = true;
    // A WRITE without an answer may still arrive: not before the answer does its layout count as gone.
    EXPECT_EQ(file->inside().cache.incarnation(), layout_incarnation);
    expect_read(0, 4096, 1);
    EXPECT_FALSE(path->layout_at_open(true).arguments);
    EXPECT_EQ(channel.layoutgets, layoutgets);
    EXPECT_EQ(channel.reads, 1);
  };
  path->layout_recall(bulk_recall()).then();
  EXPECT_TRUE(asked);
  EXPECT_NE(file->inside().cache.incarnation(), layout_incarnation);
  expect_read(0, 4096, 1);
  EXPECT_EQ(channel.layoutgets, layoutgets + 1);
  EXPECT_TRUE(path->layout_at_open(true).arguments);
}

TEST_F(RecallTest, ABulkRecallBesideALayoutgetIsToComeAgain) {
  write(0, 4096, 1);
  nfs4::Status beside = nfs4::Status::kOk;
  channel.during_layoutget = [&] { beside = path->layout_recall(bulk_recall()).status; };
  write(4 << 20, 4096, 1);
  EXPECT_EQ(beside, nfs4::Status::kDelay);
  channel.during_layoutget = {};
  EXPECT_EQ(path->layout_recall(bulk_recall()).status, nfs4::Status::kOk);
}

TEST_F(RecallTest, RecallAnyTakesTheLayoutsOfClosedFilesOnly) {
  write(0, 4096, 1);
  nfs4::CallbackRecallAnyArguments arguments;
  arguments.types.set(nfs4::kRecallAnyOtherLayoutMin);
  path->recall_any(arguments).then();
  EXPECT_EQ(channel.layoutreturns, 0);
  file->release();
  path->recall_any(arguments).then();
  EXPECT_EQ(channel.layoutreturns, 1);
}

TEST_F(RecallTest, AfterANewSessionLayoutsAreAskedForAnew) {
  expect_read(0, 4096, 0);
  path->layouts_lost();
  expect_read(0, 4096, 0);
  EXPECT_EQ(channel.layoutgets, 2);
  EXPECT_EQ(channel.reads, 0);
}

TEST_F(RecallTest, AnAnswerFromBeforeANewSessionGrantsNothing) {
  PendingLayout pending = path->layout_at_open(false);
  path->layouts_lost();
  nfs4::LayoutGetResult result;
  result.stateid.seqid = 1;
  file->take_layout(std::move(pending), result, channel.size);
  EXPECT_FALSE(file->inside().cache.stateid().has_value());
}

TEST_F(RecallTest, ShutDownReturnsWhatIsHeld) {
  write(0, 4096, 1);
  path->shut_down(clock.now() + std::chrono::seconds(5));
  EXPECT_EQ(channel.layoutreturns, 1);
  EXPECT_EQ(file->read(0, buffer->slice(0, 16)).error().number(), ESHUTDOWN);
}

}  // namespace
}  // namespace pnfsrdma::initiator
