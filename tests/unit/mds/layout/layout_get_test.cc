// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

TEST(LayoutGet, FillsAHoleWithZeroedMemoryAndGrantsIt) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const auto answer = world.get(kAlice, file, IoMode::kReadWrite, 0, 4096, 100);
  ASSERT_TRUE(answer);
  const auto segments = world.segments(answer);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].file_offset, 0u);
  EXPECT_EQ(segments[0].length, 4096u);
  EXPECT_EQ(segments[0].read, segments[0].write);
  EXPECT_NE(segments[0].write.grant, 0u);
  EXPECT_EQ(answer->stateid.seqid, 1u);
  EXPECT_FALSE(answer->return_on_close);
  EXPECT_EQ(world.stat(file)->size, 0u);
  EXPECT_EQ(world.stat(file)->space_used, 4096u);
  world.check("granted");
}

TEST(LayoutGet, SaysThatTheTailMayBeDirtyBeforeTheHandleExists) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  bool dirty_at_exposure = false;
  world.brick.before_call = [&] {
    dirty_at_exposure = *Extents(world.store).tail_dirty(file) &&
                        world.store.synced_sequence() >= world.store.last_namespace_sequence();
    return true;
  };
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  EXPECT_EQ(world.brick.calls.back(), "expose");
  EXPECT_TRUE(dirty_at_exposure);
}

TEST(LayoutGet, ARangeAlreadyHeldIsAnsweredWithTheSameGrant) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const auto first = world.get(kAlice, file, IoMode::kReadWrite, 0, 4096);
  const size_t exposures = world.brick.count("expose");
  const auto second = world.get(kAlice, file, IoMode::kReadWrite, 0, 4096, 1, world.stateid_of(first));
  ASSERT_TRUE(second);
  EXPECT_EQ(world.segments(first), world.segments(second));
  EXPECT_EQ(world.brick.count("expose"), exposures);
  EXPECT_EQ(second->stateid.seqid, 2u);
  EXPECT_EQ(second->stateid.other, first->stateid.other);
}

TEST(LayoutGet, AnOpenStateidIsTakenWhenTheLayoutIsHeldAlready) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const auto first = world.get(kAlice, file, IoMode::kReadWrite, 0, 4096);
  const auto again = world.get(kAlice, file, IoMode::kReadWrite, 0, 4096);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->stateid.other, first->stateid.other);
}

TEST(LayoutGet, TwoClientsGetGrantsOfTheirOwnOnTheSameMemory) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const auto alice = world.segments(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  const auto bob = world.segments(world.get(kBob, file, IoMode::kReadWrite, 0, 4096));
  ASSERT_EQ(alice.size(), 1u);
  ASSERT_EQ(bob.size(), 1u);
  EXPECT_NE(alice[0].write.grant, bob[0].write.grant);
  EXPECT_EQ(world.brick.grants[alice[0].write.grant].grant.logical,
            world.brick.grants[bob[0].write.grant].grant.logical);
  EXPECT_TRUE(world.recaller.recalls.empty());
}

TEST(LayoutGet, AReadLayoutShowsHolesWithoutHandles) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  EXPECT_EQ(world.write(file, 65536, std::string(4096, 'x')), Status::kOk);
  const auto segments = world.segments(world.get(kAlice, file, IoMode::kRead, 0, UINT64_MAX, 4096));
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].length, 65536u);
  EXPECT_EQ(segments[0].read.grant, 0u);
  EXPECT_NE(segments[1].read.grant, 0u);
  EXPECT_EQ(segments[1].write.grant, 0u);
  EXPECT_FALSE(world.brick.client_write(kAlice, segments[1].read.grant, 0, std::byte{1}, 1));
}

TEST(LayoutGet, WritingIntoAHoleRecallsItFromWhoReadsZerosThere) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_EQ(world.set_size(file, 65536), Status::kOk);
  ASSERT_TRUE(world.get(kBob, file, IoMode::kRead, 0, 65536));
  world.obey_recalls();
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  ASSERT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_EQ(world.recaller.recalls[0].client, kBob);
}

TEST(LayoutGet, BehindTheEndThereIsNothingToRead) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  EXPECT_EQ(world.get(kAlice, file, IoMode::kRead, 0, 4096, 1).error(), Status::kBadLayout);
  EXPECT_EQ(world.get(kAlice, file, IoMode::kRead, 0, 4096, 0).error(), Status::kLayoutTryLater);
}

TEST(LayoutGet, AReplyThatDoesNotFitIsTooSmall) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096, 1, std::nullopt, 64).error(),
            Status::kTooSmall);
  EXPECT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096, 1, std::nullopt, 200));
}

TEST(LayoutGet, AWriteLayoutToTheEndOfTheWorldCannotBeHad) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, UINT64_MAX, UINT64_MAX).error(),
            Status::kBadLayout);
  EXPECT_TRUE(world.extents(file).empty());
}

TEST(LayoutGet, AFileThatGrowsInSequenceGetsAsMuchAheadAsItHas) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const auto answer = world.get(kAlice, file, IoMode::kReadWrite, 0, UINT64_MAX, kBlock);
  const auto segments = world.segments(answer);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].length, kBlock);
  ASSERT_EQ(world.commit(kAlice, file, world.stateid_of(answer), {0, kBlock}, kBlock - 1), Status::kOk);
  const auto more = world.segments(world.get(kAlice, file, IoMode::kReadWrite, kBlock, UINT64_MAX, 4096));
  ASSERT_FALSE(more.empty());
  EXPECT_EQ(more.back().file_offset + more.back().length, 2 * kBlock);
  // No size is committed: what it was given says how far it is.
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 2 * kBlock, UINT64_MAX, 4096));
  EXPECT_EQ(world.stat(file)->space_used, 4 * kBlock);
  EXPECT_EQ(world.extents(file), (std::vector<Extent>{{0, world.extents(file).front().logical, 4 * kBlock}}));
}

TEST(LayoutGet, AByteInASparseFileCostsASmallUnit) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_EQ(world.set_size(file, uint64_t{20} << 30), Status::kOk);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, (uint64_t{5} << 30) + 5000, UINT64_MAX, 1));
  EXPECT_EQ(world.stat(file)->space_used, kSparseUnit);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, (uint64_t{5} << 30) + kSparseUnit, UINT64_MAX, 1));
  EXPECT_EQ(world.stat(file)->space_used, 2 * kSparseUnit);
}

TEST(LayoutGet, AHoleThatIsFilledInSequenceIsFilledALittleAhead) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_EQ(world.set_size(file, 64 * kBlock), Status::kOk);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, UINT64_MAX, 8 * kBlock));
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 8 * kBlock, UINT64_MAX, kBlock));
  EXPECT_EQ(world.stat(file)->space_used, 10 * kBlock);
}

TEST(LayoutGet, WhenMemoryIsShortItTakesOnlyWhatIsNeeded) {
  LayoutWorld world(1);
  const InodeId file = world.create("f");
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, UINT64_MAX, 1 << 20));
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 1 << 20, UINT64_MAX, 1 << 19));
  EXPECT_LT(world.stat(file)->space_used, kBlock);
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, kBlock, 1 << 20, 1 << 20).error(), Status::kNoSpc);
  world.check("full");
}

TEST(LayoutGet, ABrickThatCutsTheMemoryInRunsMakesOneSegmentOfEach) {
  LayoutWorld world;
  world.brick.longest_run = 1;
  const InodeId file = world.create("f");
  const auto segments =
      world.segments(world.get(kAlice, file, IoMode::kReadWrite, 0, UINT64_MAX, 2 * kBlock));
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[1].file_offset, kBlock);
}

TEST(LayoutGet, HandlesOfDifferentConnectionsAreToldApart) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  world.brick.connection = 2;
  const auto answer = world.get(kAlice, file, IoMode::kReadWrite, 0, 8192, 8192);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->layouts.size(), 2u);
}

TEST(LayoutGet, ASpentBudgetIsTryLaterAndARequestToGiveSomeBack) {
  LayoutWorld world;
  world.crash();
  world.brick.grants_max = 3;
  world.start();
  int granted = 0;
  for (const char* name : {"a", "b", "c", "d"}) {
    granted += world.get(kAlice, world.create(name), IoMode::kReadWrite, 0, 4096).has_value() ? 1 : 0;
  }
  EXPECT_EQ(granted, 2);
  ASSERT_FALSE(world.recaller.asked_for_less.empty());
  EXPECT_EQ(world.recaller.asked_for_less[0].first, kAlice);
}

// A limit of all clients together: who asks may hold little of it.
TEST(LayoutGet, ABrickThatIsUsedUpIsRelievedByWhoeverHoldsMost) {
  LayoutWorld world;
  BrickDevice& device = *world.mds->bricks().find(kFirstBrick);
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(world.get(kAlice, world.create(name), IoMode::kReadWrite, 0, 4096));
  EXPECT_EQ(device.grants_of(kAlice), 3u);
  EXPECT_FALSE(device.met_limit());
  world.brick.registrations = 3;
  const InodeId file = world.create("d");
  EXPECT_EQ(world.get(kBob, file, IoMode::kReadWrite, 0, 4096).error(), Status::kLayoutTryLater);
  ASSERT_EQ(world.recaller.asked_for_less.size(), 1u);
  EXPECT_EQ(world.recaller.asked_for_less[0].first, kAlice);
  EXPECT_EQ(device.met_limit(), world.loop.now());
  // She gives one back, and he has his.
  EXPECT_TRUE(world.give_back(kAlice, world.names->lookup(kRootInode, "a").value()->id, 0, UINT64_MAX));
  world.settle();
  EXPECT_EQ(device.grants_of(kAlice), 2u);
  EXPECT_TRUE(world.get(kBob, file, IoMode::kReadWrite, 0, 4096));
  EXPECT_EQ(device.grants_of(kBob), 1u);
}

TEST(LayoutGet, StateidsOfTheFutureAreBadAndOldOnesAreOld) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const auto first = world.get(kAlice, file, IoMode::kReadWrite, 0, 4096);
  LayoutStateid stateid = world.stateid_of(first);
  for (const uint32_t seqid : {0u, 2u, 77u}) {
    stateid.seqid = seqid;
    EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096, 1, stateid).error(), Status::kBadStateid)
        << seqid;
  }
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  stateid.seqid = 1;
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096, 1, stateid).error(), Status::kOldStateid);
  stateid.seqid = 2;
  EXPECT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096, 1, stateid));
  stateid.seqid = 6;
  EXPECT_EQ(world.get(kBob, file, IoMode::kReadWrite, 0, 4096, 1, stateid).error(), Status::kBadStateid);
}

TEST(LayoutGet, UntilTheBrickIsReadyItIsTryLater) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  world.plug.down(world.kBrick);
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096).error(), Status::kLayoutTryLater);
  world.plug.up(world.kBrick);
  world.settle();
  EXPECT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
}

// Memory at the beginning and from 1 MiB to 2 MiB, in a file of 4 MiB.
struct AFileWithHoles : ::testing::Test {
  static constexpr uint64_t kSecond = uint64_t{1} << 20;
  static constexpr uint64_t kLastHole = 2 * kSecond;
  // A result, one layout, two segments.
  static constexpr uint32_t kTwoSegments = 24 + 36 + 2 * 72;
  LayoutWorld world;
  InodeId file = world.create("f");
  void SetUp() override {
    ASSERT_EQ(world.write(file, 0, "x"), Status::kOk);
    ASSERT_EQ(world.write(file, kSecond, "x"), Status::kOk);
    ASSERT_EQ(world.set_size(file, 2 * kLastHole), Status::kOk);
  }
  size_t booked() { return world.mds->table().grants(); }
};

TEST_F(AFileWithHoles, AWriterIsBookedNothingBehindTheFirstHole) {
  const auto answer = world.get(kAlice, file, IoMode::kReadWrite, 0, 2 * kSecond);
  ASSERT_EQ(world.segments(answer).size(), 1u);
  EXPECT_EQ(booked(), 1u);
  EXPECT_EQ(world.brick.count("expose"), 1u);
  // What she was given is all that a truncation has to wait for.
  EXPECT_TRUE(world.give_back(kAlice, file, 0, kGrainSize));
  EXPECT_EQ(world.set_size(file, kSecond, kAlice), Status::kOk);
  EXPECT_TRUE(world.recaller.recalls.empty());
}

TEST_F(AFileWithHoles, AReaderIsBookedNoGrantBehindAHoleThatIsNotToldWhole) {
  ASSERT_EQ(world.write(file, uint64_t{128} << 20, "x"), Status::kOk);
  const auto answer = world.get(kAlice, file, IoMode::kRead, 0, UINT64_MAX);
  EXPECT_EQ(world.segments(answer).size(), 4u);  // grain, hole, grain, 64 MiB at most of the next hole
  EXPECT_EQ(booked(), 2u);
  EXPECT_EQ(world.brick.count("expose"), 2u);
}

TEST_F(AFileWithHoles, WhatDoesNotFitInTheReplyIsNotBooked) {
  const auto answer = world.get(kAlice, file, IoMode::kRead, 0, UINT64_MAX, 1, std::nullopt, kTwoSegments);
  ASSERT_EQ(world.segments(answer).size(), 2u);
  EXPECT_EQ(booked(), 1u);
  EXPECT_EQ(world.brick.grants.size(), 1u);
  // Nor is the hole behind it: nobody asks her before it is filled.
  ASSERT_TRUE(world.get(kBob, file, IoMode::kReadWrite, kLastHole, kGrainSize));
  EXPECT_TRUE(world.recaller.recalls.empty());
}

TEST_F(AFileWithHoles, AHoleToldEarlierStaysBooked) {
  ASSERT_EQ(world.segments(world.get(kAlice, file, IoMode::kRead, kLastHole, kGrainSize)).size(), 1u);
  const auto more = world.get(kAlice, file, IoMode::kRead, 0, UINT64_MAX, 1, std::nullopt, kTwoSegments);
  ASSERT_EQ(world.segments(more).size(), 2u);
  world.obey_recalls();
  ASSERT_TRUE(world.get(kBob, file, IoMode::kReadWrite, kLastHole, kGrainSize));
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
}

TEST_F(AFileWithHoles, ARefusalBooksNothing) {
  // It is exposed before the reply turns out to be too short for any.
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, kGrainSize, 1, std::nullopt, 64).error(),
            Status::kTooSmall);
  EXPECT_FALSE(world.mds->table().in_use(file));
  EXPECT_TRUE(world.brick.grants.empty());
}

// Alice reads an 8 MiB file of holes around one grain; a layout to write it comes cut short, by her budget.
struct AHoleFilledButNotGranted : ::testing::Test {
  static constexpr uint64_t kMiddle = uint64_t{4} << 20;
  LayoutWorld world;
  InodeId file = world.create("f");
  void SetUp() override {
    world.plug.down(world.kBrick);
    world.brick.grants_max = 3;
    world.plug.up(world.kBrick);
    world.settle();
    ASSERT_EQ(world.write(file, kMiddle, "x"), Status::kOk);
    ASSERT_EQ(world.set_size(file, 2 * kMiddle), Status::kOk);
    ASSERT_EQ(world.segments(world.get(kAlice, file, IoMode::kRead, 0, 2 * kMiddle, 2 * kMiddle)).size(), 3u);
    ASSERT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, 2 * kMiddle, 2 * kMiddle).error(),
              Status::kLayoutTryLater);
    ASSERT_EQ(world.stat(file)->space_used, 2 * kMiddle);
  }
  void mds_write(uint64_t client, ByteSpan bytes, std::optional<Status>& status) {
    world.mds->io().write({.client = client,
                           .inode = file,
                           .offset = kMiddle + 2 * kSparseUnit,
                           .data = std::make_shared<const Bytes>(bytes.begin(), bytes.end())},
                          [&](const std::expected<nfs4::WriteResult, Status>& answer) {
                            status = answer ? Status::kOk : answer.error();
                          });
    world.settle();
  }
};

TEST_F(AHoleFilledButNotGranted, IsRecalledFromWhoSawIt) {
  ASSERT_EQ(world.recaller.recalls.size(), 1u);
  const LayoutRecall& recall = world.recaller.recalls.front();
  EXPECT_EQ(recall.client, kAlice);
  EXPECT_EQ(recall.offset, kMiddle + kSparseUnit);
  EXPECT_EQ(recall.length, kMiddle - kSparseUnit);
}

// Neither by another nor by Alice herself: she would read zeros from the hole, behind her own write.
TEST_F(AHoleFilledButNotGranted, IsNotWrittenThroughTheServerBeforeItIsGivenBack) {
  for (const uint64_t client : {kBob, kAlice}) {
    std::optional<nfs4::Status> status;
    const ByteSpan bytes = as_bytes("Z");
    mds_write(client, bytes, status);
    EXPECT_FALSE(status);
    if (client == kBob) {
      world.pass(2 * kRecallPatience);
      EXPECT_EQ(status, Status::kDelay);
    } else {
      EXPECT_TRUE(world.give_back(kAlice, file, kMiddle, kMiddle));
      EXPECT_EQ(status, Status::kOk);
    }
  }
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
}

TEST_F(AHoleFilledButNotGranted, IsNotWrittenByAnotherBeforeItIsGivenBack) {
  std::optional<LayoutGranter::Answer> answer;
  world.mds->granter().grant({.client = kBob,
                              .inode = file,
                              .mode = IoMode::kReadWrite,
                              .range = {kMiddle + 2 * kSparseUnit, kMiddle + 3 * kSparseUnit},
                              .min_length = 1,
                              .max_bytes = 65536},
                             [&](LayoutGranter::Answer got) { answer = std::move(got); });
  world.settle();
  EXPECT_FALSE(answer);
  EXPECT_TRUE(world.give_back(kAlice, file, kMiddle, kMiddle));
  ASSERT_TRUE(answer);
  EXPECT_TRUE(*answer);
}

// No more is read of the file than an answer of this size has room for.
TEST(LayoutGetOfManyExtents, AMinimumOverMoreOfThemThanAnAnswerTellsIsTooSmall) {
  constexpr uint64_t kExtents = 5000;
  constexpr uint32_t kMaxBytes = 16384;
  for (const IoMode mode : {IoMode::kRead, IoMode::kReadWrite}) {
    LayoutWorld world;
    const InodeId file = world.create_sparse("f", kExtents);
    const uint64_t end = kExtents * 2 * kGrainSize;
    std::optional<LayoutGranter::Answer> answer;
    GrantRequest request{.client = kAlice, .inode = file, .mode = mode};
    request.range = {0, end};
    request.min_length = end;
    request.max_bytes = kMaxBytes;
    world.mds->granter().grant(request, [&](LayoutGranter::Answer got) { answer = std::move(got); });
    size_t rows_of_a_turn = 0;
    for (int i = 0; i < 1000 && !answer; ++i) {
      const size_t before = world.store.rows_visited;
      world.loop.run_once(Milliseconds(0));
      rows_of_a_turn = std::max(rows_of_a_turn, world.store.rows_visited - before);
    }
    ASSERT_TRUE(answer);
    EXPECT_FALSE(*answer);
    EXPECT_TRUE(mode == IoMode::kRead || answer->error() == Status::kTooSmall);
    EXPECT_LE(rows_of_a_turn, 4 * (kMaxBytes / 64));
  }
}

// Whatever the client holds already, and would take.
TEST(LayoutGetOfManyExtents, NoAnswerTellsMoreThanATurnHasRoomFor) {
  constexpr uint64_t kExtents = 5000;
  constexpr size_t kTold = (128 << 10) / 64;
  for (const uint64_t needed : {uint64_t{1}, kExtents * 2 * kGrainSize}) {
    LayoutWorld world;
    const InodeId file = world.create_sparse("f", kExtents);
    auto& table = const_cast<LayoutTable&>(world.mds->table());
    HeldLayout& layout = table.add(file, kAlice, {std::byte{kLayoutStateidTag}});
    for (const Extent& extent : world.extents(file)) {
      table.add_grant(layout, {.grant = extent.file_offset + 1,
                               .file = {extent.file_offset, extent.end()},
                               .logical = extent.logical});
    }
    GrantRequest request{.client = kAlice, .inode = file, .mode = IoMode::kRead};
    request.range = {0, kExtents * 2 * kGrainSize};
    request.min_length = needed;
    request.max_bytes = 1 << 20;
    std::optional<LayoutGranter::Answer> answer;
    world.mds->granter().grant(request, [&](LayoutGranter::Answer got) { answer = std::move(got); });
    world.settle();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->has_value(), needed == 1);
    const size_t told = world.segments(*answer).size();
    EXPECT_LE(told, kTold);
    EXPECT_GE(told, *answer ? kTold / 2 : 0);
  }
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
