// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

struct Conflicts : ::testing::Test {
  LayoutWorld world;
  InodeId file = world.create("f");
  std::byte own = static_cast<std::byte>('A' + file % 26);

  // Alice writes `size` bytes under a layout, commits them, and leaves dirt behind.
  LayoutGranter::Answer written(uint64_t size, uint64_t dirt = 0) {
    auto answer = world.get(kAlice, file, IoMode::kReadWrite, 0, UINT64_MAX, size + dirt);
    for (const nfs4::Segment& segment : world.segments(answer)) {
      if (segment.file_offset >= size + dirt) continue;
      const uint64_t count = std::min(segment.length, size + dirt - segment.file_offset);
      EXPECT_TRUE(world.brick.client_write(kAlice, segment.write.grant, 0, own, count));
    }
    EXPECT_EQ(world.commit(kAlice, file, world.stateid_of(answer), {0, size}, size - 1), Status::kOk);
    return answer;
  }
};

TEST_F(Conflicts, TruncateRecallsThenCutsThenZeroesBeforeItIsAnswered) {
  written(10000);
  world.obey_recalls();
  ASSERT_EQ(world.set_size(file, 5000), Status::kOk);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_EQ(world.stat(file)->size, 5000u);
  EXPECT_EQ(world.stat(file)->space_used, 8192u);
  EXPECT_FALSE(*Extents(world.store).tail_dirty(file));
  ASSERT_EQ(world.set_size(file, 8192), Status::kOk);
  EXPECT_EQ(world.read(file, 5000, 4096), std::string(3192, '\0'));
  world.check("truncated");
}

TEST_F(Conflicts, ATruncateThatGrowsRecallsWhoeverMayWriteBehindTheEnd) {
  written(10000, 500);
  world.obey_recalls();
  ASSERT_EQ(world.set_size(file, 12000), Status::kOk);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_EQ(world.stat(file)->size, 12000u);
  // What was written there and never committed has not become part of the file.
  EXPECT_EQ(world.read(file, 10000, 2000), std::string(2000, '\0'));
  world.check("grown");
}

TEST_F(Conflicts, ATruncateThatGrowsLeavesReadersAlone) {
  written(10000);
  EXPECT_TRUE(world.give_back(kAlice, file));
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kRead, 0, 10000));
  ASSERT_EQ(world.set_size(file, 12000), Status::kOk);
  EXPECT_TRUE(world.recaller.recalls.empty());
}

TEST_F(Conflicts, ATruncateThatWaitsTooLongIsDelayedAndTheRecallGoesOn) {
  const auto layout = written(10000);
  EXPECT_EQ(world.set_size(file, 0), std::nullopt);
  world.pass(Milliseconds(300));
  EXPECT_EQ(world.stat(file)->size, 10000u);
  // The recall is pending: the holder gets nothing new there, and is told what it is.
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096).error(), Status::kLayoutTryLater);
  world.pass(Milliseconds(1100));
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096).error(), Status::kReturnConflict);
  EXPECT_TRUE(world.give_back(kAlice, file));
  EXPECT_EQ(world.set_size(file, 0), Status::kOk);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_TRUE(world.extents(file).empty());
}

TEST_F(Conflicts, WhoWasPutOffComesBeforeNewLayouts) {
  written(10000);
  EXPECT_EQ(world.set_size(file, 0, kBob), std::nullopt);
  world.pass(Milliseconds(300));
  EXPECT_TRUE(world.give_back(kAlice, file));
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096).error(), Status::kLayoutTryLater);
  EXPECT_EQ(world.set_size(file, 0, kBob), Status::kOk);
  EXPECT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
}

TEST_F(Conflicts, ARecallNobodyAnsweredIsARecallConflict) {
  written(10000);
  world.recaller.answer = RecallAnswer::kUnreachable;
  EXPECT_EQ(world.set_size(file, 0, kAlice), std::nullopt);
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096).error(), Status::kRecallConflict);
}

TEST_F(Conflicts, NoMatchingLayoutEndsTheRecall) {
  written(10000);
  world.recaller.answer = RecallAnswer::kNoMatching;
  EXPECT_EQ(world.set_size(file, 0), Status::kOk);
  EXPECT_TRUE(world.brick.grants.empty());
}

TEST_F(Conflicts, ARecallThatWasDelayedIsSentAgainUnderTheSameSeqid) {
  written(10000);
  world.recaller.answer = RecallAnswer::kDelay;
  EXPECT_EQ(world.set_size(file, 0), std::nullopt);
  world.pass(Milliseconds(200));
  ASSERT_GE(world.recaller.recalls.size(), 2u);
  EXPECT_EQ(world.recaller.recalls[0].stateid, world.recaller.recalls[1].stateid);
}

TEST_F(Conflicts, ALayoutNotReturnedInOneLeaseIsRevokedWithoutTheClientsHelp) {
  const auto layout = written(10000, 500);
  const uint64_t change = world.stat(file)->change;
  EXPECT_EQ(world.set_size(file, 0), std::nullopt);
  world.pass(Milliseconds(29'000));
  EXPECT_FALSE(world.brick.grants.empty());
  world.pass(Milliseconds(2'000));
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_TRUE(world.recaller.revoked.contains(kAlice));
  EXPECT_GT(world.stat(file)->change, change);
  const LayoutStateid stateid = world.stateid_of(layout);
  EXPECT_EQ(world.mds->conflicts().test_stateid(kAlice, stateid), Status::kAdminRevoked);
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, 10000}, 9999), Status::kAdminRevoked);
  EXPECT_EQ(world.mds->conflicts().free_stateid(kAlice, stateid), Status::kOk);
  EXPECT_FALSE(world.recaller.revoked.contains(kAlice));
  EXPECT_EQ(world.mds->conflicts().free_stateid(kAlice, stateid), Status::kBadStateid);
  world.check("revoked");
}

TEST_F(Conflicts, AnAdministratorRevokesWithoutTheClientsHelpAndHearsWhenTheHandlesAreDead) {
  const auto layout = written(10000, 500);
  std::optional<size_t> handles;
  world.mds->layouts().revoke_layout(kAlice, file, [&](std::optional<size_t> dead) {
    handles = dead;
    EXPECT_TRUE(world.brick.grants.empty());
  });
  world.pass(Milliseconds(200));
  EXPECT_GE(handles.value_or(0), 1u);
  EXPECT_TRUE(world.recaller.recalls.empty());
  EXPECT_TRUE(world.recaller.revoked.contains(kAlice));
  EXPECT_EQ(world.mds->conflicts().test_stateid(kAlice, world.stateid_of(layout)), Status::kAdminRevoked);
  std::optional<size_t> again = 7;
  world.mds->layouts().revoke_layout(kAlice, file, [&](std::optional<size_t> dead) { again = dead; });
  EXPECT_EQ(again, std::nullopt);
  world.check("revoked by the administrator");
}

TEST_F(Conflicts, AnAdministratorAsksForALayoutBackAsAConflictDoes) {
  written(10000);
  world.mds->layouts().recall_layout(kAlice, file);
  world.pass(Milliseconds(10));
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_FALSE(world.brick.grants.empty());
  EXPECT_TRUE(world.give_back(kAlice, file));
  EXPECT_TRUE(world.brick.grants.empty());
}

TEST_F(Conflicts, ALiveStateidCannotBeFreed) {
  const auto layout = written(10000);
  EXPECT_EQ(world.mds->conflicts().free_stateid(kAlice, world.stateid_of(layout)), Status::kLocksHeld);
  EXPECT_EQ(world.mds->conflicts().test_stateid(kAlice, world.stateid_of(layout)), Status::kOk);
}

TEST_F(Conflicts, WhoMayWriteIsNotKnownBeforeTheBricksHaveShutOutThoseOfTheLastRun) {
  EXPECT_FALSE(world.mds->conflicts().may_be_written_by_others(file, kBob));
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 10000));
  EXPECT_TRUE(world.mds->conflicts().may_be_written_by_others(file, kBob));
  EXPECT_FALSE(world.mds->conflicts().may_be_written_by_others(file, kAlice));
  EXPECT_TRUE(world.mds->conflicts().may_be_used_by_others(file, kBob));
  EXPECT_FALSE(world.mds->conflicts().may_be_used_by_others(file, kAlice));
  world.unknown = {kAlice};
  world.crash();
  world.build();
  EXPECT_TRUE(world.mds->conflicts().may_be_written_by_others(file, kBob)) << "Alice still may";
  EXPECT_TRUE(world.mds->conflicts().may_be_used_by_others(file, kBob));
  world.stop();
  world.start();
  EXPECT_FALSE(world.mds->conflicts().may_be_written_by_others(file, kBob));
}

TEST_F(Conflicts, WhoHasALayoutToReadUsesTheFile) {
  EXPECT_FALSE(world.mds->conflicts().may_be_used_by_others(file, kBob));
  written(10000);
  EXPECT_TRUE(world.give_back(kAlice, file));
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kRead, 0, 10000));
  EXPECT_TRUE(world.mds->conflicts().may_be_used_by_others(file, kBob));
  EXPECT_FALSE(world.mds->conflicts().may_be_written_by_others(file, kBob));
  EXPECT_TRUE(world.give_back(kAlice, file));
  EXPECT_FALSE(world.mds->conflicts().may_be_used_by_others(file, kBob));
}

TEST_F(Conflicts, AReturnIsAnsweredWhenTheHandleIsDeadAndNotBefore) {
  written(10000);
  world.brick.hold_withdrawals = true;
  bool done = false;
  world.mds->layouts().give_back(kAlice, file, {0, kEndOfFile}, IoMode::kAny, [&] { done = true; });
  world.settle();
  EXPECT_FALSE(done);
  // Blocks are not freed either.
  EXPECT_EQ(world.set_size(file, 0), std::nullopt);
  EXPECT_FALSE(world.extents(file).empty());
  world.brick.release();
  world.settle();
  EXPECT_TRUE(done);
  EXPECT_TRUE(world.extents(file).empty());
}

TEST_F(Conflicts, AHandleDiesWithItsLastByte) {
  written(10000);
  const size_t grants = world.brick.grants.size();
  EXPECT_TRUE(world.give_back(kAlice, file, 0, 4096));
  EXPECT_EQ(world.brick.grants.size(), grants);
  EXPECT_TRUE(world.give_back(kAlice, file, 4096, UINT64_MAX));
  EXPECT_TRUE(world.brick.grants.empty());
}

TEST_F(Conflicts, TheEndOfAWriteLayoutZeroesWhatItLeftBehindTheEnd) {
  written(10000, 2000);
  EXPECT_TRUE(world.give_back(kAlice, file));
  EXPECT_FALSE(*Extents(world.store).tail_dirty(file));
  world.check("returned");
  ASSERT_EQ(world.set_size(file, 12000), Status::kOk);
  EXPECT_EQ(world.read(file, 10000, 2000), std::string(2000, '\0'));
}

TEST_F(Conflicts, TheTailIsNotZeroedWhileAnotherMayWriteThere) {
  written(10000, 2000);
  const auto bob = world.get(kBob, file, IoMode::kReadWrite, 0, 12000, 12000);
  ASSERT_TRUE(bob);
  const size_t zeroed = world.brick.zeroed.size();
  EXPECT_TRUE(world.give_back(kAlice, file));
  EXPECT_EQ(world.brick.zeroed.size(), zeroed);
  EXPECT_EQ(world.commit(kBob, file, world.stateid_of(bob), {0, 12000}, 11999), Status::kOk);
  EXPECT_EQ(world.read(file, 10000, 2000), std::string(2000, static_cast<char>(own)));
  EXPECT_TRUE(world.give_back(kBob, file));
  world.check("both returned");
}

TEST_F(Conflicts, AClientThatIsGoneIsFencedFirst) {
  written(10000, 500);
  world.brick.hold_withdrawals = true;
  bool done = false;
  world.mds->conflicts().on_client_gone(kAlice, [&] { done = true; });
  world.settle();
  EXPECT_FALSE(done);
  EXPECT_TRUE(world.mds->conflicts().client_holds_layouts(kAlice));
  world.brick.release();
  world.settle();
  EXPECT_TRUE(done);
  EXPECT_FALSE(world.brick.sessions.contains(kAlice));
  EXPECT_FALSE(world.mds->conflicts().client_holds_layouts(kAlice));
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096).error(), Status::kLayoutTryLater);
  // What may still have been on its way has landed before the tail is zeroed.
  EXPECT_TRUE(*Extents(world.store).tail_dirty(file));
  world.pass(Milliseconds(150));
  EXPECT_FALSE(*Extents(world.store).tail_dirty(file));
  world.check("gone");
}

// From the fence until its delegation is off the record others may lock what it has locked.
TEST_F(Conflicts, WhoIsFencedFromAFileGetsNoLayoutOfItUntilTheFenceGoes) {
  written(10000);
  LayoutConflicts::Fence fence;
  world.mds->conflicts().before_delegation_revoked(kAlice, file, [&](auto made) { fence = std::move(made); });
  world.settle();
  ASSERT_NE(fence, nullptr);
  EXPECT_TRUE(world.brick.grants.empty());
  world.pass(Milliseconds(200));  // what was behind the end is zeroed
  const auto get = [&](uint64_t client, InodeId of) {
    const auto got = world.get(client, of, IoMode::kReadWrite, 0, 4096);
    return got ? Status::kOk : got.error();
  };
  EXPECT_EQ(get(kAlice, file), Status::kLayoutTryLater);
  EXPECT_EQ(get(kBob, file), Status::kOk);
  const InodeId other = world.create("other");
  ASSERT_EQ(world.write(other, 0, std::string(100, static_cast<char>('A' + other % 26))), Status::kOk);
  EXPECT_EQ(get(kAlice, other), Status::kOk);
  fence = nullptr;
  EXPECT_EQ(get(kAlice, file), Status::kOk);
}

TEST_F(Conflicts, ALayoutGetThatIsUnderWayAtAFenceGetsNone) {
  written(10000);
  EXPECT_TRUE(world.give_back(kAlice, file));
  std::optional<LayoutGranter::Answer> answer;
  world.brick.hold_exposures = true;
  world.mds->granter().grant(
      {.client = kAlice, .inode = file, .mode = IoMode::kReadWrite, .range = {0, 4096}, .min_length = 4096},
      [&](LayoutGranter::Answer got) { answer = std::move(got); });
  world.settle();
  ASSERT_FALSE(answer);
  bool done = false;
  world.mds->conflicts().before_delegation_revoked(kAlice, file, [&](const auto&) { done = true; });
  world.settle();
  ASSERT_TRUE(done) << "it has no layout, and the fence has gone again";
  world.brick.release();
  world.settle();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error(), Status::kLayoutTryLater);
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_EQ(world.mds->table().layouts(), 0U);
}

TEST_F(Conflicts, SpaceAheadIsGivenBackAtTheLastClose) {
  world.recaller.opens.insert({file, kAlice});
  written(3 << 20);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 3 << 20, UINT64_MAX, 4096));
  EXPECT_GT(world.stat(file)->space_used, 4u << 20);
  const uint64_t change = world.stat(file)->change;
  world.recaller.opens.clear();
  world.obey_recalls();
  world.mds->conflicts().on_last_close({file}, [] {});
  world.settle();
  EXPECT_EQ(world.stat(file)->space_used, 3u << 20);
  EXPECT_EQ(world.stat(file)->change, change);
  world.check("closed");
}

TEST_F(Conflicts, AnUnlinkedFileIsFreedAfterTheLastCloseAndTheLastHandle) {
  world.recaller.opens.insert({file, kAlice});
  written(3 << 20);
  const auto removed = world.names->remove(kRootInode, "f");
  ASSERT_TRUE(removed && removed->orphaned);
  world.mds->conflicts().on_orphaned(file);
  world.settle();
  EXPECT_TRUE(world.recaller.recalls.empty());
  EXPECT_FALSE(world.extents(file).empty());
  world.recaller.opens.clear();
  world.mds->conflicts().on_last_close({file}, [] {});
  world.settle();
  ASSERT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_FALSE(world.extents(file).empty());
  EXPECT_TRUE(world.give_back(kAlice, file));
  world.settle();
  EXPECT_TRUE(world.extents(file).empty());
  EXPECT_FALSE(world.names->get(file));
  EXPECT_TRUE(world.brick.blocks.empty());
}

TEST_F(Conflicts, ChmodRecallsOnlyFromClientsThatDoNotHaveTheFileOpen) {
  written(10000);
  world.recaller.opens.insert({file, kAlice});
  std::optional<Status> status;
  world.mds->conflicts().before_access_change(file, kBob, [&](Status got) { status = got; });
  world.settle();
  EXPECT_EQ(status, Status::kOk);
  EXPECT_TRUE(world.recaller.recalls.empty());
  world.recaller.opens.clear();
  world.obey_recalls();
  status.reset();
  world.mds->conflicts().before_access_change(file, kBob, [&](Status got) { status = got; });
  world.settle();
  EXPECT_EQ(status, Status::kOk);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
}

TEST_F(Conflicts, ABrickThatWasLostTakesAllLayoutsWithIt) {
  const auto layout = written(10000, 500);
  world.plug.down(world.kBrick);
  world.brick.restart();
  EXPECT_EQ(world.mds->conflicts().test_stateid(kAlice, world.stateid_of(layout)), Status::kAdminRevoked);
  EXPECT_TRUE(world.recaller.revoked.contains(kAlice));
  EXPECT_EQ(world.set_size(file, 0), Status::kDelay);
  world.plug.up(world.kBrick);
  world.pass(Milliseconds(300));
  world.check("back");
  EXPECT_EQ(world.set_size(file, 0), Status::kOk);
}

TEST_F(Conflicts, AHigherEpochFencesUs) {
  written(10000);
  world.brick.epoch += 10;
  EXPECT_FALSE(world.get(kBob, file, IoMode::kReadWrite, 0, 4096));
  EXPECT_FALSE(world.fenced.empty());
  EXPECT_FALSE(world.mds->ready());
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096).error(), Status::kLayoutTryLater);
  EXPECT_EQ(world.read(file, 0, 10), "error");
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
