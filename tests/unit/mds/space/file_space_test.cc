// SPDX-License-Identifier: Apache-2.0
#include "server/mds/space/file_space.h"

#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

void remove(LayoutWorld& world, const std::string& name) {
  const auto removed = world.names->remove(kRootInode, name);
  ASSERT_TRUE(removed);
  if (removed->orphaned) world.mds->conflicts().on_orphaned(removed->inode->id);
  world.settle();
}

TEST(FileSpace, ABlockWhoseLastFileGoesWhileItsFreeGrainsAreZeroedIsGivenBack) {
  LayoutWorld world;
  ASSERT_EQ(world.write(world.create("a"), 0, "first"), Status::kOk);
  ASSERT_EQ(world.write(world.create("b"), 0, "second"), Status::kOk);
  ASSERT_EQ(world.brick.blocks.size(), 1u);
  remove(world, "a");
  world.brick.hold_zeroing = true;
  world.pass(Milliseconds(600));  // the freed grain has rested, its turn to be zeroed has come
  ASSERT_EQ(world.brick.count("zero"), 1u);
  remove(world, "b");
  EXPECT_EQ(world.brick.blocks.size(), 1u);  // the brick is still busy in it
  world.brick.release();
  world.settle();
  EXPECT_TRUE(world.brick.blocks.empty());
  EXPECT_EQ(world.space().used_blocks(), 0u);
  world.check("zeroed");
}

TEST(FileSpace, TwoSmallFilesThatAskForABlockAtOnceLeaveNoneEmpty) {
  LayoutWorld world;
  const InodeId a = world.create("a");
  const InodeId b = world.create("b");
  const auto bytes = std::make_shared<const Bytes>(100);
  int written = 0;
  for (const InodeId file : {a, b}) {
    world.mds->io().write({.client = kBob, .inode = file, .data = bytes},
                          [&](const auto& answer) { written += answer ? 1 : 0; });
  }
  world.settle();
  ASSERT_EQ(written, 2);
  world.check("written");
  remove(world, "a");
  remove(world, "b");
  EXPECT_TRUE(world.brick.blocks.empty());
  world.check("removed");
}

TEST(FileSpace, AFailedAllocationGivesTheBlockItHadTakenBack) {
  LayoutWorld world;
  const InodeId file = world.create("a");
  // The brick gives a block for small files; the commit of the extents then fails.
  world.brick.behind_call = [&] {
    if (world.brick.calls.back() == "alloc") world.store.before_commit = [] { return false; };
    return true;
  };
  const std::string text(4, static_cast<char>('A' + file % 26));
  EXPECT_NE(world.write(file, 0, text), Status::kOk);
  world.store.before_commit = [] { return true; };
  world.brick.behind_call = [] { return true; };
  world.settle();
  EXPECT_TRUE(world.brick.blocks.empty());
  EXPECT_EQ(world.space().used_blocks(), 0u);
  ASSERT_EQ(world.write(file, 0, text), Status::kOk);
  world.check("again");
}

// --- ENOSPC only when nothing is free ---

// Files of four grains that fill the brick; every second one is removed again.
struct AFragmentedBrick : ::testing::Test {
  static constexpr uint64_t kBlocks = 4;
  static constexpr uint64_t kFile = 4 * kGrainSize;
  static constexpr uint64_t kFiles = kBlocks * kBlock / kFile;
  LayoutWorld world{kBlocks};

  void SetUp() override {
    for (uint64_t i = 0; i < kFiles; ++i) ASSERT_EQ(fill(i), Status::kOk) << i;
    ASSERT_EQ(free(), 0u);
    for (uint64_t i = 0; i < kFiles; i += 2) remove(world, std::to_string(i));
    ASSERT_EQ(free(), kBlocks * kBlock / 2);
    // Not one block is empty.
    ASSERT_EQ(world.brick.blocks.size(), kBlocks);
  }
  Status fill(uint64_t number) {
    const InodeId file = world.create(std::to_string(number));
    return world.write(file, 0, std::string(kFile, static_cast<char>('A' + file % 26)));
  }
  uint64_t free() { return world.mds->data().space().free; }
};

TEST_F(AFragmentedBrick, TakesAFileInAsManyPiecesAsItNeeds) {
  world.pass(Milliseconds(200));
  const InodeId file = world.create("f");
  const std::string text(size_t{203} << 10, static_cast<char>('A' + file % 26));
  ASSERT_EQ(world.write(file, 0, text), Status::kOk);
  EXPECT_EQ(world.read(file, 0, text.size()), text);
  world.check("written");
}

TEST_F(AFragmentedBrick, IsFilledToTheLastGrain) {
  world.pass(Milliseconds(200));
  const InodeId file = world.create("f");
  const std::string text(kFile, static_cast<char>('A' + file % 26));
  for (uint64_t at = 0; at < kBlocks * kBlock / 2; at += kFile)
    ASSERT_EQ(world.write(file, at, text), Status::kOk);
  EXPECT_EQ(free(), 0u);
  EXPECT_EQ(world.write(file, kBlocks * kBlock / 2, "x"), Status::kNoSpc);
  world.check("full");
}

TEST_F(AFragmentedBrick, SaysTryAgainWhileWhatIsFreeRests) {
  EXPECT_EQ(world.write(world.create("f"), 0, "text"), Status::kDelay);
  EXPECT_EQ(world.get(kAlice, world.create("g"), IoMode::kReadWrite, 0, 4096).error(),
            Status::kLayoutTryLater);
}

TEST_F(AFragmentedBrick, GivesNoLayoutOfMorePiecesThanAreWorthARegistration) {
  world.pass(Milliseconds(200));
  const InodeId file = world.create("f");
  const uint64_t much = (GrainPool::kPiecesMax + 1) * kFile;
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, 0, much, much).error(), Status::kLayoutTryLater);
  EXPECT_TRUE(world.extents(file).empty());
  EXPECT_EQ(world.write(file, 0, std::string(much, static_cast<char>('A' + file % 26))), Status::kOk);
  world.check("written");
}

TEST_F(AFragmentedBrick, IsZeroedToTheLastGrain) {
  world.brick.zeroed.clear();
  world.pass(Milliseconds(1500));
  uint64_t zeroed = 0;
  for (const brick::Range& range : world.brick.zeroed) zeroed += range.length;
  EXPECT_EQ(zeroed, kBlocks * kBlock / 2);
}

TEST(FileSpace, NothingIsAheadOfAFileWhereNoFileCanReach) {
  LayoutWorld world;
  const InodeId file = world.create("a");
  constexpr uint64_t kEnd = kFileSizeMax + 1;
  const char own = static_cast<char>('A' + file % 26);
  ASSERT_EQ(world.write(file, kEnd - 64 * 1024, std::string(32 * 1024, own)), Status::kOk);
  EXPECT_EQ(world.write(file, kEnd - 32 * 1024, std::string(28 * 1024, own)), Status::kOk);
  EXPECT_EQ(world.stat(file)->size, kEnd - 4 * 1024);
  world.check("written");
}

TEST(FileSpace, BlocksOnTheirWayBackToTheBrickAreWaitedFor) {
  LayoutWorld world(4);
  const InodeId large = world.create("large");
  const auto granted = world.get(kAlice, large, IoMode::kReadWrite, 0, 4 * kBlock, 4 * kBlock);
  ASSERT_EQ(world.commit(kAlice, large, world.stateid_of(granted), {0, 4 * kBlock}, 4 * kBlock - 1),
            Status::kOk);
  ASSERT_TRUE(world.give_back(kAlice, large));
  world.brick.hold_frees = true;
  remove(world, "large");
  const InodeId small = world.create("small");
  EXPECT_EQ(world.write(small, 0, "x"), Status::kDelay);
  world.brick.release();
  world.settle();
  EXPECT_EQ(world.write(small, 0, std::string(1, static_cast<char>('A' + small % 26))), Status::kOk);
  world.check("written");
}

TEST(FileSpace, ABrickWithDamagedBlocksIsUsedToItsLastGoodOne) {
  LayoutWorld world(4);
  world.brick.damaged = 2;
  const InodeId file = world.create("f");
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, kBlock, kBlock));
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, kBlock, 3 * kBlock, 3 * kBlock).error(),
            Status::kNoSpc);
  EXPECT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, kBlock, kBlock, kBlock));
  EXPECT_EQ(world.mds->data().space().available, 0u);
  world.check("full");
}

TEST(FileSpace, BricksShareWhatNoneOfThemHasRoomFor) {
  LayoutWorld world(2, {2});
  const InodeId file = world.create("f");
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, kBlock, kBlock));
  EXPECT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, kBlock, 3 * kBlock, 3 * kBlock));
  EXPECT_EQ(world.mds->data().space().available, 0u);
  world.check("shared");
}

// --- what is ahead of files ---

// Alice grows a file of 8 MiB, of a brick of 16 MiB, and has 8 MiB more ahead of it.
struct AGrowingFile : ::testing::Test {
  static constexpr uint64_t kSize = 4 * kBlock;
  LayoutWorld world{8};
  InodeId file = world.create("growing");
  std::byte own = static_cast<std::byte>('A' + file % 26);

  void SetUp() override {
    world.recaller.opens.insert({file, kAlice});
    const auto front = world.get(kAlice, file, IoMode::kReadWrite, 0, kSize, kSize);
    ASSERT_TRUE(front);
    ASSERT_EQ(world.commit(kAlice, file, world.stateid_of(front), {0, kSize}, kSize - 1), Status::kOk);
    // As a brick with more room would have given it.
    ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, kSize, kSize, kSize));
    ASSERT_EQ(world.mds->data().space().available, 0u);
    world.recaller.recalls.clear();
  }
  std::string text(InodeId inode, size_t length) {
    return std::string(length, static_cast<char>('A' + inode % 26));
  }
};

TEST_F(AGrowingFile, GivesUpWhatIsAheadOfItBeforeAnybodyHearsENOSPC) {
  world.obey_recalls();
  const InodeId other = world.create("other");
  // Its blocks are on their way through the brick by now.
  const Status first = world.write(other, 0, text(other, 100));
  EXPECT_TRUE(first == Status::kOk || first == Status::kDelay);
  ASSERT_FALSE(world.recaller.recalls.empty());
  EXPECT_EQ(world.recaller.recalls.front().offset, kSize);
  world.pass(Milliseconds(300));
  ASSERT_EQ(world.write(other, 0, text(other, 100)), Status::kOk);
  EXPECT_EQ(world.stat(file)->space_used, kSize);
  world.check("given up");
}

TEST_F(AGrowingFile, IsWaitedForWithDelay) {
  const InodeId other = world.create("other");
  std::optional<Status> answer;
  world.mds->io().write({.client = kBob, .inode = other, .data = std::make_shared<const Bytes>(100)},
                        [&](const auto& got) { answer = got ? Status::kOk : got.error(); });
  world.settle();
  EXPECT_FALSE(answer);  // Alice has not answered yet
  world.pass(Milliseconds(300));
  EXPECT_EQ(answer, Status::kDelay);
  // Her lease is over: all she had is taken away.
  world.pass(LayoutWorld::kLease);
  world.pass(Milliseconds(500));
  EXPECT_EQ(world.write(other, 0, text(other, 100)), Status::kOk);
  world.check("revoked");
}

TEST_F(AGrowingFile, IsFullWhenNothingIsAheadOfAnyFile) {
  const auto rest = world.get(kAlice, file, IoMode::kReadWrite, kSize, kSize, kSize);
  ASSERT_TRUE(rest);
  ASSERT_EQ(world.commit(kAlice, file, world.stateid_of(rest), {kSize, 2 * kSize}, 2 * kSize - 1),
            Status::kOk);
  world.obey_recalls();
  EXPECT_EQ(world.write(world.create("other"), 0, "x"), Status::kNoSpc);
  EXPECT_TRUE(world.recaller.recalls.empty());
  world.check("full");
}

TEST_F(AGrowingFile, KeepsItsFrontAtTheLastCloseAndNothingAhead) {
  world.obey_recalls();
  world.recaller.opens.clear();
  world.mds->conflicts().on_last_close({file}, [] {});
  world.settle();
  EXPECT_EQ(world.stat(file)->space_used, kSize);
  EXPECT_FALSE(world.mds->table().find(file, kAlice) == nullptr);  // the layout of the front stays
  world.check("closed");
}

TEST_F(AGrowingFile, LosesNothingThatIsWrittenAndNotCommittedYet) {
  // Alice has written into the last grain of what is kept, and told nobody.
  const InodeId small = world.create("small");
  const std::byte mark = static_cast<std::byte>('A' + small % 26);
  world.obey_recalls();
  static_cast<void>(world.write(small, 0, text(small, 100)));
  world.pass(Milliseconds(300));
  ASSERT_EQ(world.write(small, 0, text(small, 100)), Status::kOk);
  const auto layout = world.segments(world.get(kAlice, small, IoMode::kReadWrite, 0, 4096, 4096));
  ASSERT_EQ(layout.size(), 1u);
  ASSERT_TRUE(world.get(kAlice, small, IoMode::kReadWrite, 65536, 4096, 4096));
  ASSERT_TRUE(world.brick.client_write(kAlice, layout[0].write.grant, 100, mark, 900));
  bool over = false;
  world.mds->layouts().take_back_ahead(kNoInode, std::nullopt, [&] { over = true; });
  world.settle();
  ASSERT_TRUE(over);
  EXPECT_EQ(world.stat(small)->space_used, kGrainSize);
  EXPECT_EQ(world.brick.byte_at(world.extents(small).front().logical + 999), mark);
  world.check("taken back");
}

TEST(FileSpace, WhatIsAheadGoesWhileOnlyTheBrickOfTheFrontIsAway) {
  LayoutWorld world(8, {8});
  constexpr uint64_t kFront = 8 * kBlock;
  const InodeId file = world.create("f");
  ASSERT_EQ(world.allocate(file, {0, kFront}), Status::kOk);
  world.recaller.opens.insert({file, kAlice});
  const auto grown = world.get(kAlice, file, IoMode::kReadWrite, kFront, 2 * kBlock, 2 * kBlock);
  ASSERT_TRUE(grown);
  ASSERT_EQ(
      world.commit(kAlice, file, world.stateid_of(grown), {kFront, kFront + kBlock}, kFront + kBlock - 1),
      Status::kOk);
  const auto extents = world.extents(file);
  const uint32_t front = zone_of(extents.front().logical);
  ASSERT_NE(front, zone_of(extents.back().logical));
  world.plug.down(world.addresses()[front]);
  world.settle();
  ASSERT_TRUE(world.give_back(kAlice, file));
  EXPECT_EQ(world.stat(file)->space_used, kFront + kBlock);
  world.plug.up(world.addresses()[front]);
  world.settle();
  world.check("there again");
}

// The grain of the end is zeroed behind it, so its brick must be there.
TEST(FileSpace, NothingIsTrimmedWhileTheBrickOfTheEndIsAway) {
  LayoutWorld world(8, {8});
  const InodeId file = world.create("f");
  world.recaller.opens.insert({file, kAlice});
  const auto grown = world.get(kAlice, file, IoMode::kReadWrite, 0, 2 * kBlock, 2 * kBlock);
  ASSERT_TRUE(grown);
  ASSERT_EQ(world.commit(kAlice, file, world.stateid_of(grown), {0, kBlock}, kBlock - 1), Status::kOk);
  const std::string address = world.addresses()[zone_of(world.extents(file).front().logical)];
  world.plug.down(address);
  world.settle();
  world.mds->layouts().take_back_ahead(kNoInode, std::nullopt, [] {});
  world.settle();
  EXPECT_EQ(world.stat(file)->space_used, 2 * kBlock);
  world.plug.up(address);
  world.pass(Milliseconds(200));
  world.mds->layouts().take_back_ahead(kNoInode, std::nullopt, [] {});
  world.settle();
  EXPECT_EQ(world.stat(file)->space_used, kBlock);
  world.check("there again");
}

TEST(FileSpace, WhatIsAheadOfAFileIsFoundAgainAfterACrash) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const std::string text(size_t{1} << 20, static_cast<char>('A' + file % 26));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(world.write(file, i * text.size(), text), Status::kOk);
  ASSERT_GT(world.stat(file)->space_used, 3 * text.size());
  world.crash();
  world.start();
  EXPECT_EQ(world.stat(file)->space_used, 3 * text.size());
  world.check("restarted");
}

// --- many extents: never all of them in one turn ---

struct AScatteredFile : ::testing::Test {
  static constexpr uint64_t kExtents = 3 * kExtentsPerBatch + 7;
  static constexpr uint64_t kStride = 32768;
  static constexpr size_t kOthers = 8;  // of a batch: the inode, times, records
  LayoutWorld world;
  InodeId file = 0;

  void SetUp() override {
    file = world.create("f");
    const std::string text(1, static_cast<char>('A' + file % 26));
    for (uint64_t i = 0; i < kExtents; ++i) ASSERT_EQ(world.write(file, i * kStride, text), Status::kOk);
    ASSERT_EQ(world.extents(file).size(), kExtents);
    world.store.largest = 0;
  }
  uint64_t size() { return (kExtents - 1) * kStride + 1; }
  void expect_batches() { EXPECT_LE(world.store.largest, kExtentsPerBatch + kOthers); }
  // The process dies at its n-th commit from now on, behind it or before it.
  void die_at(int n, bool behind) {
    auto left = std::make_shared<int>(n);
    const auto alive = [left] { return --*left > 0; };
    const auto dead = [left] { return *left > 0; };
    world.store.before_commit = behind ? std::function<bool()>(dead) : alive;
    world.store.behind_commit = behind ? std::function<bool()>(alive) : dead;
  }
  void live_again() {
    world.store.before_commit = world.store.behind_commit = [] { return true; };
    world.crash();
    world.start();
    world.pass(Milliseconds(1000));
  }
};

TEST_F(AScatteredFile, IsCutInBatches) {
  EXPECT_EQ(world.set_size(file, 100), Status::kOk);
  expect_batches();
  EXPECT_EQ(world.extents(file).size(), 1u);
  EXPECT_EQ(world.stat(file)->space_used, world.extents(file).front().length);
  EXPECT_FALSE(Extents(world.store).tail_dirty(file).value());
  world.check("cut");
}

TEST_F(AScatteredFile, IsPunchedInBatches) {
  EXPECT_EQ(world.deallocate(file, {kStride + 1, size() - 1}), Status::kOk);
  expect_batches();
  EXPECT_EQ(world.extents(file).size(), 3u);
  EXPECT_EQ(world.stat(file)->size, size());
  EXPECT_EQ(world.read(file, kStride, 2), world.read(file, 0, 1) + std::string(1, '\0'));
  world.check("punched");
}

TEST_F(AScatteredFile, IsRemovedInBatches) {
  remove(world, "f");
  world.settle();
  expect_batches();
  EXPECT_TRUE(world.brick.blocks.empty());
  EXPECT_FALSE(world.names->get(file));
  world.check("removed");
}

TEST_F(AScatteredFile, ThatIsPartlyCutWhenTheProcessDiesShowsItsNewSizeAndZeros) {
  for (const bool behind : {false, true}) {
    for (int n = 2; n <= 3; ++n) {
      SCOPED_TRACE(std::to_string(n) + (behind ? " behind" : " before"));
      const uint64_t kept = size() / 2 + n * kStride;
      die_at(n, behind);
      world.set_size(file, kept);
      live_again();
      EXPECT_EQ(world.stat(file)->size, kept);
      EXPECT_LE(world.extents(file).back().file_offset, kept);
      world.check("restarted");
      EXPECT_EQ(world.set_size(file, size()), Status::kOk);
      EXPECT_EQ(world.read(file, size() - 1, 1), std::string(1, '\0'));
      const std::string text(1, static_cast<char>('A' + file % 26));
      for (uint64_t i = 0; i < kExtents; ++i) ASSERT_EQ(world.write(file, i * kStride, text), Status::kOk);
    }
  }
}

TEST_F(AScatteredFile, ThatIsPartlyRemovedWhenTheProcessDiesGoesAtTheNextStart) {
  die_at(4, false);  // the name, and two of the four batches
  remove(world, "f");
  ASSERT_TRUE(world.names->get(file));
  EXPECT_LT(world.extents(file).size(), kExtents);
  EXPECT_FALSE(world.extents(file).empty());
  live_again();
  EXPECT_FALSE(world.names->get(file));
  EXPECT_TRUE(world.brick.blocks.empty());
  world.check("removed");
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
