// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/file_io.h"

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
  EXPECT_EQ(world.stat(file)->space_used, 4096u);
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
  ASSERT_EQ(world.write(file, 0, "x", nfs4::StableHow::kUnstable), Status::kOk);
  const nfs4::Verifier before = world.mds->io().verifier();
  world.brick.verifier = {std::byte{9}};
  std::optional<nfs4::Verifier> answer;
  world.mds->io().commit(file, 0, 0, [&](std::expected<nfs4::Verifier, Status> got) { answer = *got; });
  world.settle();
  ASSERT_TRUE(answer);
  EXPECT_NE(*answer, before);
}

// Replies wait for commits of kind kNamespace.
struct Durability : ::testing::Test {
  LayoutWorld world;
  InodeId file = world.create("f");
  size_t waited() const { return std::ranges::count(world.store.kinds, CommitKind::kNamespace); }
  std::optional<nfs4::Verifier> commit() {
    std::optional<nfs4::Verifier> answer;
    world.mds->io().commit(file, 0, 0, [&](std::expected<nfs4::Verifier, Status> got) { answer = *got; });
    world.settle();
    return answer;
  }
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
  ASSERT_EQ(world.write(file, 8192, "more", nfs4::StableHow::kUnstable), Status::kOk);
  // It is on record that Alice writes: nothing but the extents has to become durable.
  const size_t before = waited();
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 8192, 4));
  EXPECT_EQ(waited(), before + 1);
}

TEST_F(Durability, LostWithTheHostOfTheMetadataShowsInTheVerifier) {
  ASSERT_EQ(world.write(file, 0, "text", nfs4::StableHow::kUnstable), Status::kOk);
  const nfs4::Verifier before = world.mds->io().verifier();
  world.crash();
  world.start();
  EXPECT_EQ(world.mds->io().verifier(), before);  // a process loses nothing
  world.crash(0);
  world.start();
  EXPECT_NE(world.mds->io().verifier(), before);
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
