// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/file_io.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

TEST(FileIo, WhatWasWrittenIsReadAndHolesAreZeros) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  EXPECT_EQ(world.write(file, 10000, "hello"), Status::kOk);
  bool end = false;
  EXPECT_EQ(world.read(file, 9998, 100, &end), std::string("\0\0hello", 7));
  EXPECT_TRUE(end);
  EXPECT_EQ(world.read(file, 0, 4, &end), std::string(4, '\0'));
  EXPECT_FALSE(end);
  EXPECT_EQ(world.read(file, 20000, 4, &end), "");
  EXPECT_TRUE(end);
  EXPECT_EQ(world.stat(file)->size, 10005u);
  EXPECT_EQ(world.stat(file)->space_used, kSparseUnit);
}

TEST(FileIo, ItsHolesAreToldAsSuch) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  EXPECT_EQ(world.pieces(file, 0, 100), ".");
  ASSERT_EQ(world.set_size(file, 10 * kSparseUnit), Status::kOk);
  EXPECT_EQ(world.pieces(file, 0, 100), "[0 +100]");
  EXPECT_EQ(world.pieces(file, 5, 10 * kSparseUnit), fmt::format("[5 +{}].", 10 * kSparseUnit - 5));
  EXPECT_EQ(world.pieces(file, 10 * kSparseUnit, 100), ".");
  ASSERT_EQ(world.write(file, 2 * kSparseUnit, std::string(kSparseUnit, 'x')), Status::kOk);
  ASSERT_EQ(world.write(file, 3 * kSparseUnit, std::string(kSparseUnit, 'y')), Status::kOk);
  ASSERT_EQ(world.write(file, 9 * kSparseUnit, std::string(kSparseUnit, 'z')), Status::kOk);
  const uint64_t begin = 3 * kSparseUnit - 2;
  EXPECT_EQ(world.pieces(file, begin, 4), fmt::format("{} xxyy", begin));
  EXPECT_EQ(world.pieces(file, 2 * kSparseUnit - 3, 5),
            fmt::format("[{} +3] {} xx", 2 * kSparseUnit - 3, 2 * kSparseUnit));
  EXPECT_EQ(world.pieces(file, 4 * kSparseUnit - 1, 5 * kSparseUnit + 2),
            fmt::format("{} y [{} +{}] {} z", 4 * kSparseUnit - 1, 4 * kSparseUnit, 5 * kSparseUnit,
                        9 * kSparseUnit));
  EXPECT_EQ(world.pieces(file, 10 * kSparseUnit - 2, 100), fmt::format("{} zz.", 10 * kSparseUnit - 2));
}

// It ends where there is no room any more: in data, or before a piece.
TEST(FileIo, PiecesThatHaveNoRoomAreLeftOut) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_EQ(world.write(file, 0, std::string(kSparseUnit, 'x')), Status::kOk);
  ASSERT_EQ(world.write(file, 2 * kSparseUnit, std::string(kSparseUnit, 'y')), Status::kOk);
  const uint64_t hole = kSparseUnit, data = 2 * kSparseUnit, all = 3 * kSparseUnit - hole + 2;
  constexpr uint32_t kPiece = FileIo::kPieceBytes;
  const std::string first = fmt::format("{} xx", hole - 2), second = fmt::format(" [{} +{}]", hole, hole);
  EXPECT_EQ(world.pieces(file, hole - 2, all, kPiece), "");
  EXPECT_EQ(world.pieces(file, hole - 2, all, kPiece + 1), fmt::format("{} x", hole - 2));
  EXPECT_EQ(world.pieces(file, hole - 2, all, kPiece + 2), first);
  EXPECT_EQ(world.pieces(file, hole - 2, all, 2 * kPiece + 2), first + second);
  EXPECT_EQ(world.pieces(file, hole - 2, all, 3 * kPiece + 2), first + second);
  EXPECT_EQ(world.pieces(file, hole - 2, all, 3 * kPiece + 5), first + second + fmt::format(" {} yyy", data));
}

TEST(FileIo, AStableWriteIsFlushedBeforeItIsAnswered) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  EXPECT_EQ(world.write(file, 0, "x", nfs4::StableHow::kUnstable), Status::kOk);
  EXPECT_EQ(world.brick.count("persist"), 0u);
  EXPECT_EQ(world.write(file, 0, "y", nfs4::StableHow::kFileSync), Status::kOk);
  EXPECT_EQ(world.brick.count("persist"), 1u);
}

TEST(FileIo, SmallFilesShareABlock) {
  LayoutWorld world;
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(world.write(world.create(name), 0, "small"), Status::kOk);
  EXPECT_EQ(world.brick.blocks.size(), 1u);
}

TEST(FileIo, AWriteUnderSomebodysLayoutIsSeenThroughIt) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const auto segments = world.segments(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(world.write(file, 0, "Z"), Status::kOk);
  const uint64_t logical = world.brick.grants[segments[0].read.grant].grant.logical;
  EXPECT_EQ(world.brick.byte_at(logical), std::byte{'Z'});
  EXPECT_TRUE(world.recaller.recalls.empty());
}

TEST(FileIo, AWriteIntoAHoleRecallsItFromItsReadersFirst) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_EQ(world.set_size(file, 65536), Status::kOk);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kRead, 0, 65536));
  world.obey_recalls();
  EXPECT_EQ(world.write(file, 100, "Z"), Status::kOk);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
}

TEST(FileIo, GrowingOverOldMemoryIsDurableBeforeTheBytes) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  EXPECT_EQ(world.write(file, 0, "abc"), Status::kOk);
  bool synced = false;
  world.brick.before_call = [&] {
    synced = world.store.synced_sequence() >= world.store.last_namespace_sequence();
    return true;
  };
  EXPECT_EQ(world.write(file, 3, "def", nfs4::StableHow::kUnstable), Status::kOk);
  EXPECT_TRUE(synced);
  EXPECT_EQ(world.read(file, 0, 10), "abcdef");
}

TEST(FileIo, AFullBrickIsNoSpaceAndChangesNothing) {
  LayoutWorld world(1);
  const InodeId file = world.create("f");
  EXPECT_EQ(world.write(file, 0, std::string(kBlock, 'x')), Status::kOk);
  EXPECT_EQ(world.write(file, kBlock, "y"), Status::kNoSpc);
  EXPECT_EQ(world.stat(file)->size, kBlock);
}

TEST(FileIo, FreedGrainsAreZeroedBeforeTheNextFileHasThem) {
  LayoutWorld world(1);
  const InodeId first = world.create("a");
  ASSERT_EQ(world.write(first, 0, std::string(200000, 'x')), Status::kOk);
  ASSERT_EQ(world.set_size(first, 0), Status::kOk);
  world.pass(Milliseconds(1000));
  for (int i = 0; i < 20; ++i) {
    const InodeId file = world.create("g" + std::to_string(i));
    ASSERT_EQ(world.write(file, 100, "y"), Status::kOk);
    ASSERT_EQ(world.read(file, 0, 200), std::string(100, '\0') + "y");
  }
}

TEST(FileIo, AConnectionThatFailsIsDelay) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_EQ(world.write(file, 0, "x"), Status::kOk);
  world.memory->broken = true;
  EXPECT_EQ(world.write(file, 0, "y"), Status::kDelay);
  EXPECT_EQ(world.read(file, 0, 1), "error");
}

TEST(FileIo, TheVerifierChangesWhenTheBrickMayHaveLostBytes) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const nfs4::Verifier before = world.write_unstable(file, 0, "x");
  EXPECT_EQ(world.commit(file), before);
  EXPECT_EQ(world.write_unstable(file, 0, "y"), before);
  world.brick.verifier = {std::byte{9}};
  const auto after = world.commit(file);
  ASSERT_TRUE(after);
  EXPECT_NE(*after, before);
  // What is written now is on the brick that is there now.
  EXPECT_EQ(world.write_unstable(file, 0, "z"), *after);
  EXPECT_EQ(world.commit(file), after);
}

TEST(FileIo, ALossThatTheDeadServerHadSeenDoubtsWhatWasWrittenBefore) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const InodeId other = world.create("g");
  const nfs4::Verifier before = world.write_unstable(file, 0, "x");
  EXPECT_EQ(world.write_unstable(other, 0, "x"), before);
  world.brick.verifier = {std::byte{9}};
  ASSERT_TRUE(world.commit(other));
  world.crash();
  world.start();
  EXPECT_NE(world.commit(file), before);
}

TEST(FileIo, ALossWhileNoServerRanDoubtsWhatWasWrittenBefore) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const nfs4::Verifier before = world.write_unstable(file, 0, "x");
  world.crash();
  world.brick.verifier = {std::byte{9}};
  world.start();
  EXPECT_NE(world.commit(file), before);
}

// The size is published before the bytes; who reads then must not keep the zeros for the new bytes.
TEST(FileIo, ChangeMovesOnceMoreWhenTheBytesAreThere) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  std::optional<uint64_t> with_zeros;
  world.memory->before_write = [&] { with_zeros = world.stat(file)->change; };
  ASSERT_EQ(world.write(file, 0, "grown", nfs4::StableHow::kUnstable), Status::kOk);
  ASSERT_TRUE(with_zeros);
  EXPECT_NE(world.stat(file)->change, *with_zeros);
  with_zeros.reset();
  ASSERT_EQ(world.write(file, 0, "again", nfs4::StableHow::kUnstable), Status::kOk);
  ASSERT_TRUE(with_zeros);
  EXPECT_NE(world.stat(file)->change, *with_zeros);
}

TEST(FileIo, CommitFlushesWhatAClientHasWrittenBehindTheEnd) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 65536, 65536));
  ASSERT_EQ(world.stat(file)->size, 0u);
  bool answered = false;
  world.mds->io().commit(file, 0, 65536,
                         [&](std::expected<nfs4::Verifier, Status> got) { answered = got.has_value(); });
  world.settle();
  EXPECT_TRUE(answered);
  EXPECT_EQ(world.brick.count("persist"), 1u);
}

// Replies wait for commits of kind kNamespace.
struct Durability : ::testing::Test {
  LayoutWorld world;
  InodeId file = world.create("f");
  size_t waited() const { return std::ranges::count(world.store.kinds, CommitKind::kNamespace); }
  std::optional<nfs4::Verifier> commit() { return world.commit(file); }
};

TEST_F(Durability, OfAnUnstableWriteIntoFreshMemoryIsWaitedForByCommit) {
  const size_t before = waited();
  ASSERT_EQ(world.write(file, 0, "text", nfs4::StableHow::kUnstable), Status::kOk);
  EXPECT_EQ(world.stat(file)->size, 4u);
  EXPECT_EQ(waited(), before);
  ASSERT_TRUE(commit());
  EXPECT_EQ(waited(), before + 1);
  ASSERT_TRUE(commit());
  EXPECT_EQ(waited(), before + 1);
}

TEST_F(Durability, OfAnUnstableWriteComesWithAnyLaterReplyThatWaits) {
  ASSERT_EQ(world.write(file, 0, "text", nfs4::StableHow::kUnstable), Status::kOk);
  ASSERT_TRUE(world.names->update(file, {.mode = 0600}));
  const size_t before = waited();
  ASSERT_TRUE(commit());
  EXPECT_EQ(waited(), before);
}

TEST_F(Durability, OfAStableWriteIsWaitedForAtOnce) {
  const size_t before = waited();
  ASSERT_EQ(world.write(file, 0, "text", nfs4::StableHow::kFileSync), Status::kOk);
  EXPECT_EQ(waited(), before + 1);
}

TEST_F(Durability, OfTheWayToTheBytesComesBeforeALayoutOfThem) {
  ASSERT_EQ(world.set_size(file, 1 << 20), Status::kOk);
  ASSERT_EQ(world.write(file, 0, "text", nfs4::StableHow::kUnstable), Status::kOk);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4));
  ASSERT_EQ(world.write(file, 65536, "more", nfs4::StableHow::kUnstable), Status::kOk);
  // It is on record that Alice writes: nothing but the extents has to become durable.
  const size_t before = waited();
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 65536, 4));
  EXPECT_EQ(waited(), before + 1);
}

TEST_F(Durability, LostWithTheHostOfTheMetadataShowsInTheVerifier) {
  const nfs4::Verifier before = world.write_unstable(file, 0, "text");
  world.crash();
  world.start();
  EXPECT_EQ(world.write_unstable(file, 0, "text"), before);  // a process loses nothing
  world.crash(0);
  world.start();
  EXPECT_NE(world.write_unstable(world.create("g"), 0, "text"), before);
}

// Alice has written behind the end and committed nothing.
struct AGap : ::testing::Test {
  LayoutWorld world;
  InodeId file = world.create("f");
  void SetUp() override {
    const auto layout = world.get(kAlice, file, IoMode::kReadWrite, 0, 65536, 65536);
    ASSERT_TRUE(layout);
    ASSERT_TRUE(world.brick.client_write(kAlice, world.segments(layout).front().write.grant, 5000,
                                         std::byte{'d'}, 100));
  }
};

TEST_F(AGap, ThatAWriteLeavesIsZerosThoughSomebodyWroteThereUncommitted) {
  world.obey_recalls();
  ASSERT_EQ(world.write(file, 20000, "new"), Status::kOk);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_EQ(world.read(file, 5000, 100), std::string(100, '\0'));
  EXPECT_EQ(world.read(file, 20000, 100), "new");
}

TEST_F(AGap, IsNotOpenedWhileItsWriterDoesNotReturnHisLayout) {
  std::optional<Status> status;
  const auto text = as_bytes(std::string_view("new"));
  world.mds->io().write({.client = kBob,
                         .inode = file,
                         .offset = 20000,
                         .data = std::make_shared<const Bytes>(text.begin(), text.end())},
                        [&](const auto& answer) { status = answer ? Status::kOk : answer.error(); });
  world.pass(Milliseconds(300));
  EXPECT_EQ(status, Status::kDelay);
  EXPECT_EQ(world.stat(file)->size, 0u);
}

TEST_F(AGap, ThatAWriteDoesNotLeaveRecallsNobody) {
  ASSERT_EQ(world.write(file, 0, std::string(6000, 'n')), Status::kOk);
  EXPECT_TRUE(world.recaller.recalls.empty());
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
