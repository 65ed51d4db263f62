// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/file_clone.h"

#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

class FileCloneTest : public ::testing::Test {
 protected:
  FileCloneTest() { world_.obey_recalls(); }

  // Whose bytes LayoutWorld::check() takes for the source's own: every 26th file has the same pattern.
  InodeId make_target() {
    for (int i = 0; i < 25; ++i) world_.create("between" + std::to_string(i));
    return world_.create("target");
  }
  std::string pattern(size_t count) const {
    return std::string(count, static_cast<char>('A' + source_ % 26));
  }
  static std::string zeros(size_t count) { return std::string(count, '\0'); }
  Status clone(uint64_t source_offset = 0, uint64_t target_offset = 0, uint64_t count = 0) {
    return world_.clone({.client = kBob,
                         .source = source_,
                         .source_offset = source_offset,
                         .target = target_,
                         .target_offset = target_offset,
                         .count = count});
  }
  std::string source(uint64_t offset, uint32_t count) { return world_.read(source_, offset, count); }
  std::string target(uint64_t offset, uint32_t count) { return world_.read(target_, offset, count); }
  void restart() {
    world_.crash(0);
    world_.start();
    world_.obey_recalls();
  }
  void remove(const std::string& name, InodeId file) {
    ASSERT_TRUE(world_.names->remove(kRootInode, name));
    world_.mds->conflicts().on_orphaned(file);
    world_.settle();
  }

  LayoutWorld world_{64};
  const InodeId source_ = world_.create("source");
  const InodeId target_ = make_target();
};

TEST_F(FileCloneTest, BothHaveTheBytesInOnePlaceDurably) {
  const uint64_t size = 3 * kBlock + 1000;
  ASSERT_EQ(world_.write(source_, 0, pattern(size)), Status::kOk);
  const uint64_t blocks = world_.brick.blocks.size();
  const uint64_t change = world_.stat(target_)->change;
  ASSERT_EQ(clone(), Status::kOk);
  EXPECT_EQ(world_.brick.copied, 0u);
  EXPECT_EQ(world_.brick.blocks.size(), blocks);
  EXPECT_EQ(world_.stat(target_)->size, size);
  EXPECT_EQ(world_.stat(target_)->space_used, round_up(size, kGrainSize));
  EXPECT_GT(world_.stat(target_)->change, change);
  EXPECT_TRUE(target(0, size) == pattern(size));
  world_.check("cloned");
  restart();
  EXPECT_TRUE(target(0, size) == pattern(size));
  EXPECT_TRUE(source(0, size) == pattern(size));
  world_.check("restarted");
}

// In batches, where it is in many pieces: nobody sees it before the last one, and a crash leaves nothing of it.
TEST_F(FileCloneTest, OfManyPiecesThereIsAllOrNothingWhereverItDies) {
  constexpr uint64_t kStep = 64 * 1024;
  constexpr uint64_t kPieces = 9;
  bool ended = false;
  for (int at = 1; !ended; ++at) {
    SCOPED_TRACE(at);
    ASSERT_LT(at, 100);
    LayoutWorld world{64};
    world.obey_recalls();
    const InodeId file = world.create("file");
    for (int i = 0; i < 25; ++i) world.create("between" + std::to_string(i));
    const InodeId copy = world.create("copy");
    const std::string piece(kGrainSize, static_cast<char>('A' + file % 26));
    for (uint64_t i = 0; i < kPieces; ++i) ASSERT_EQ(world.write(file, i * kStep, piece), Status::kOk);
    const std::string bytes = world.read(file, 0, kPieces * kStep);
    int left = at;
    bool dead = false;
    world.store.before_commit = [&] { return !(dead = dead || --left <= 0); };
    const Status status = world.clone({.client = kBob, .source = file, .target = copy, .slice = 2});
    ended = !dead;
    EXPECT_EQ(status == Status::kOk, world.stat(copy)->size > 0);
    world.restart_after_death();
    EXPECT_TRUE(world.stat(copy)->size == 0 || world.read(copy, 0, kPieces * kStep) == bytes);
    EXPECT_TRUE(!ended || world.stat(copy)->size > 0);
    if (world.stat(copy)->size == 0) EXPECT_EQ(world.stat(copy)->space_used, 0U);
    ASSERT_EQ(world.clone({.client = kBob, .source = file, .target = copy, .slice = 3}), Status::kOk);
    EXPECT_TRUE(world.read(copy, 0, kPieces * kStep) == bytes);
    world.check("cloned");
    if (!ended) continue;
    EXPECT_GE(at, 5);
    ASSERT_EQ(world.clone({.client = kBob, .source = file, .target = copy, .slice = 2}), Status::kOk);
    EXPECT_TRUE(world.read(copy, 0, kPieces * kStep) == bytes) << "over what it has: one batch";
  }
}

// Who has the target open keeps what is ahead of it: a file that grows shows zeros there, and nothing of the source.
TEST_F(FileCloneTest, WhatACrashLeavesOfManyPiecesIsNeverSeenThoughTheTargetStaysOpen) {
  constexpr uint64_t kStep = 64 * 1024;
  constexpr uint64_t kPieces = 9;
  constexpr uint64_t kSize = kPieces * kStep;
  bool ended = false;
  for (int at = 1; !ended; ++at) {
    SCOPED_TRACE(at);
    ASSERT_LT(at, 100);
    LayoutWorld world{64};
    const InodeId file = world.create("file");
    for (int i = 0; i < 25; ++i) world.create("between" + std::to_string(i));
    const InodeId copy = world.create("copy");
    const std::string piece(kGrainSize, static_cast<char>('A' + file % 26));
    for (uint64_t i = 0; i < kPieces; ++i) ASSERT_EQ(world.write(file, i * kStep, piece), Status::kOk);
    int left = at;
    bool dead = false;
    world.store.before_commit = [&] { return !(dead = dead || --left <= 0); };
    static_cast<void>(world.clone({.client = kBob, .source = file, .target = copy, .slice = 2}));
    ended = !dead;
    if (ended) continue;
    world.crash();  // the process alone: what was committed is there
    world.store.before_commit = [] { return true; };
    world.recaller.opens.insert({copy, kBob});
    world.start();
    world.pass(Milliseconds(1500));
    if (world.stat(copy)->size > 0) continue;  // all of it was there
    if (at % 2 == 0) {
      EXPECT_EQ(world.set_size(copy, kSize), Status::kOk);
    } else {
      EXPECT_EQ(world.write(copy, kSize - 1, std::string(1, '\0')), Status::kOk);
    }
    EXPECT_TRUE(world.read(copy, 0, kSize) == zeros(kSize));
    world.check("grown");
  }
}

// Holes are pieces, too.
TEST_F(FileCloneTest, OverBytesThatAreThereItIsOneBatchHoweverManyHolesItHas) {
  constexpr uint64_t kExtents = FileSpace::kClonedExtentsMax / 2 + 100;
  LayoutWorld world{80};
  world.obey_recalls();
  const InodeId file = world.create_sparse("file", kExtents);
  const InodeId copy = world.create("copy");
  ASSERT_EQ(world.set_size(copy, world.stat(file)->size), Status::kOk);
  std::vector<size_t> counts;
  world.store.before_commit = [&] {
    counts.push_back(world.extents(copy).size());
    return true;
  };
  ASSERT_EQ(world.clone({.client = kBob, .source = file, .target = copy}), Status::kOk);
  world.store.before_commit = [] { return true; };
  EXPECT_EQ(world.extents(copy).size(), kExtents);
  for (const size_t count : counts) EXPECT_TRUE(count == 0 || count == kExtents) << count;
}

TEST_F(FileCloneTest, OneThatFailsInTheMiddleLeavesNothing) {
  constexpr uint64_t kStep = 64 * 1024;
  for (uint64_t i = 0; i < 9; ++i)
    ASSERT_EQ(world_.write(source_, i * kStep, pattern(kGrainSize)), Status::kOk);
  int left = 4;
  world_.store.before_commit = [&] { return --left != 0; };
  EXPECT_NE(world_.clone({.client = kBob, .source = source_, .target = target_, .slice = 2}), Status::kOk);
  EXPECT_LT(left, 0) << "what was there went again";
  EXPECT_EQ(world_.stat(target_)->size, 0U);
  EXPECT_EQ(world_.stat(target_)->space_used, 0U);
  EXPECT_TRUE(world_.extents(target_).empty());
  world_.check("failed");
}

TEST_F(FileCloneTest, WhatIsWrittenToOneIsNotInTheOther) {
  ASSERT_EQ(world_.write(source_, 0, pattern(3 * kBlock)), Status::kOk);
  ASSERT_EQ(clone(), Status::kOk);
  ASSERT_EQ(world_.write(target_, kBlock + 5000, zeros(10)), Status::kOk);
  EXPECT_EQ(world_.brick.copied, kBlock);
  EXPECT_TRUE(source(0, 3 * kBlock) == pattern(3 * kBlock));
  EXPECT_TRUE(target(0, 3 * kBlock) == pattern(kBlock + 5000) + zeros(10) + pattern(2 * kBlock - 5010));
  world_.check("target written");
  ASSERT_EQ(world_.write(source_, 0, zeros(100)), Status::kOk);
  EXPECT_EQ(world_.brick.copied, 2 * kBlock);
  EXPECT_TRUE(source(0, 200) == zeros(100) + pattern(100));
  EXPECT_TRUE(target(0, 200) == pattern(200));
  // It has its own now.
  ASSERT_EQ(world_.write(source_, 4096, zeros(100)), Status::kOk);
  EXPECT_EQ(world_.brick.copied, 2 * kBlock);
  world_.check("both written");
  restart();
  EXPECT_TRUE(source(0, 200) == zeros(100) + pattern(100));
  EXPECT_TRUE(target(0, 200) == pattern(200));
  world_.check("restarted");
}

TEST_F(FileCloneTest, ALayoutToWriteIsOfACopyAndReadersOfTheOldPlaceAskAgain) {
  ASSERT_EQ(world_.write(source_, 0, pattern(3 * kBlock)), Status::kOk);
  ASSERT_EQ(clone(), Status::kOk);
  ASSERT_TRUE(world_.get(kBob, target_, IoMode::kRead, 0, 3 * kBlock));
  ASSERT_TRUE(world_.get(kBob, source_, IoMode::kRead, 0, 3 * kBlock));
  const auto layout = world_.get(kAlice, target_, IoMode::kReadWrite, kBlock, UINT64_MAX, 4096);
  ASSERT_TRUE(layout);
  ASSERT_FALSE(world_.recaller.recalls.empty());
  for (const LayoutRecall& recall : world_.recaller.recalls) EXPECT_EQ(recall.inode, target_);
  const auto segments = world_.segments(layout);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].file_offset, kBlock);
  EXPECT_EQ(segments[0].length, kBlock);
  ASSERT_TRUE(world_.brick.client_write(kAlice, segments[0].write.grant, 0, std::byte{0}, kBlock));
  EXPECT_TRUE(source(0, 3 * kBlock) == pattern(3 * kBlock));
  EXPECT_TRUE(target(kBlock, kBlock) == zeros(kBlock));
  world_.check("written");
}

TEST_F(FileCloneTest, WhoReadsTheOldPlaceAndAsksToWriteGivesItBackFirst) {
  ASSERT_EQ(world_.write(source_, 0, pattern(kBlock)), Status::kOk);
  ASSERT_EQ(clone(), Status::kOk);
  ASSERT_TRUE(world_.get(kAlice, target_, IoMode::kRead, 0, kBlock));
  const auto refused = world_.get(kAlice, target_, IoMode::kReadWrite, 0, kBlock, 4096);
  EXPECT_EQ(refused.error(), Status::kRecallConflict);
  EXPECT_EQ(world_.recaller.recalls.size(), 1u);
  EXPECT_TRUE(world_.get(kAlice, target_, IoMode::kReadWrite, 0, kBlock, 4096));
  world_.check("granted");
}

TEST_F(FileCloneTest, WritersOfTheSourceLeaveFirstAndWhatTheyCommittedIsCloned) {
  const auto layout = world_.get(kAlice, source_, IoMode::kReadWrite, 0, UINT64_MAX, 8192);
  ASSERT_TRUE(layout);
  const uint64_t grant = world_.segments(layout)[0].write.grant;
  ASSERT_TRUE(world_.brick.client_write(kAlice, grant, 0, static_cast<std::byte>(pattern(1)[0]), 6000));
  world_.recaller.on_recall = [&](const LayoutRecall& recall) {
    world_.loop.post([&, recall] {
      CommitRequest request{
          .client = kAlice, .inode = source_, .stateid = world_.stateid_of(layout), .range = {0, 6000}};
      request.last_write_offset = 4999;
      world_.mds->committer().commit(request, [](const auto&) {});
      world_.mds->layouts().give_back(recall.client, recall.inode, {0, kEndOfFile}, IoMode::kAny, [] {});
    });
  };
  ASSERT_EQ(clone(), Status::kOk);
  EXPECT_FALSE(world_.brick.client_write(kAlice, grant, 0, std::byte{0}, 10));
  EXPECT_EQ(world_.stat(target_)->size, 5000u);
  EXPECT_TRUE(target(0, 9000) == pattern(5000));
  // What he wrote behind the end is in neither of them.
  ASSERT_EQ(world_.set_size(target_, 9000), Status::kOk);
  EXPECT_TRUE(target(0, 9000) == pattern(5000) + zeros(4000));
  world_.check("cloned");
}

TEST_F(FileCloneTest, WhoDoesNotGiveBackIsWaitedForABit) {
  ASSERT_EQ(world_.write(source_, 0, pattern(kBlock)), Status::kOk);
  ASSERT_TRUE(world_.get(kAlice, source_, IoMode::kReadWrite, 0, kBlock, 4096));
  world_.recaller.on_recall = nullptr;
  std::optional<Status> status;
  world_.mds->clones().clone({.client = kBob, .source = source_, .target = target_},
                             [&](Status got) { status = got; });
  world_.settle();
  EXPECT_FALSE(status);
  world_.pass(kRecallPatience + Milliseconds(100));
  EXPECT_EQ(status, Status::kDelay);
  EXPECT_EQ(world_.stat(target_)->size, 0u);
  world_.check("refused");
}

TEST_F(FileCloneTest, TheMemoryIsFreedWithTheLastFileThatHasIt) {
  ASSERT_EQ(world_.write(source_, 0, pattern(3 * kBlock)), Status::kOk);
  ASSERT_EQ(clone(), Status::kOk);
  remove("source", source_);
  EXPECT_EQ(world_.brick.blocks.size(), 3u);
  EXPECT_TRUE(target(0, 3 * kBlock) == pattern(3 * kBlock));
  world_.check("source removed");
  // Nobody else has it any more: nothing to copy.
  ASSERT_EQ(world_.write(target_, 0, pattern(10)), Status::kOk);
  EXPECT_EQ(world_.brick.copied, 0u);
  restart();
  remove("target", target_);
  EXPECT_EQ(world_.brick.blocks.size(), 0u);
  world_.check("both removed");
}

TEST_F(FileCloneTest, WhatTheTargetHadIsFreed) {
  ASSERT_EQ(world_.write(source_, 0, pattern(kBlock)), Status::kOk);
  ASSERT_EQ(world_.write(target_, 0, pattern(3 * kBlock)), Status::kOk);
  ASSERT_EQ(clone(0, kBlock, kBlock), Status::kOk);
  EXPECT_EQ(world_.stat(target_)->size, 3 * kBlock);
  world_.check("cloned");
  EXPECT_EQ(world_.brick.blocks.size(), 3u);
  // The same once more changes nothing.
  ASSERT_EQ(clone(0, kBlock, kBlock), Status::kOk);
  EXPECT_EQ(world_.brick.blocks.size(), 3u);
  world_.check("cloned again");
}

TEST_F(FileCloneTest, CutsAndHolesInTheMiddleOfAGrainLeaveTheOtherFile) {
  ASSERT_EQ(world_.write(source_, 0, pattern(20000)), Status::kOk);
  ASSERT_EQ(clone(), Status::kOk);
  ASSERT_EQ(world_.set_size(target_, 13000), Status::kOk);
  EXPECT_TRUE(source(0, 20000) == pattern(20000));
  world_.check("cut");
  ASSERT_EQ(world_.set_size(target_, 20000), Status::kOk);
  EXPECT_TRUE(target(0, 20000) == pattern(13000) + zeros(7000));
  ASSERT_EQ(world_.deallocate(target_, {100, 8200}), Status::kOk);
  EXPECT_TRUE(target(0, 20000) == pattern(100) + zeros(8100) + pattern(4800) + zeros(7000));
  EXPECT_TRUE(source(0, 20000) == pattern(20000));
  world_.check("punched");
  ASSERT_EQ(world_.set_size(source_, 0), Status::kOk);
  EXPECT_TRUE(target(0, 20000) == pattern(100) + zeros(8100) + pattern(4800) + zeros(7000));
  world_.check("source cut");
}

TEST_F(FileCloneTest, BytesBehindTheEndAreZerosInBoth) {
  ASSERT_EQ(world_.write(source_, 0, pattern(5000)), Status::kOk);
  ASSERT_EQ(clone(), Status::kOk);
  ASSERT_EQ(world_.write(target_, 7000, pattern(10)), Status::kOk);
  EXPECT_TRUE(target(0, 7010) == pattern(5000) + zeros(2000) + pattern(10));
  ASSERT_EQ(world_.set_size(source_, 8000), Status::kOk);
  EXPECT_TRUE(source(0, 8000) == pattern(5000) + zeros(3000));
  world_.check("grown");
}

TEST_F(FileCloneTest, HolesStayHoles) {
  ASSERT_EQ(world_.write(source_, 0, pattern(4096)), Status::kOk);
  ASSERT_EQ(world_.write(source_, 1 << 20, pattern(4096)), Status::kOk);
  ASSERT_EQ(world_.set_size(source_, 2 << 20), Status::kOk);
  ASSERT_EQ(world_.write(target_, 0, pattern(2 << 20)), Status::kOk);
  ASSERT_EQ(clone(), Status::kOk);
  EXPECT_EQ(world_.stat(target_)->space_used, world_.stat(source_)->space_used);
  EXPECT_EQ(world_.seek(target_, 100000, nfs4::ContentType::kData)->offset, uint64_t{1} << 20);
  world_.check("cloned");
}

TEST_F(FileCloneTest, APlaceOfTheSameFile) {
  ASSERT_EQ(world_.write(source_, 0, pattern(3 * kGrainSize)), Status::kOk);
  const FileClone::What what{
      .client = kBob, .source = source_, .target = source_, .target_offset = 4 * kGrainSize};
  ASSERT_EQ(world_.clone(what), Status::kOk);
  EXPECT_TRUE(source(0, 7 * kGrainSize) ==
              pattern(3 * kGrainSize) + zeros(kGrainSize) + pattern(3 * kGrainSize));
  world_.check("cloned");
  ASSERT_EQ(world_.write(source_, 4 * kGrainSize, zeros(100)), Status::kOk);
  EXPECT_TRUE(source(0, 3 * kGrainSize) == pattern(3 * kGrainSize));
  world_.check("written");
  ASSERT_EQ(world_.set_size(source_, 0), Status::kOk);
  EXPECT_TRUE(world_.brick.blocks.empty());
}

TEST_F(FileCloneTest, WhatCannotBeShared) {
  ASSERT_EQ(world_.write(source_, 0, pattern(10000)), Status::kOk);
  ASSERT_EQ(world_.write(target_, 0, pattern(20000)), Status::kOk);
  EXPECT_EQ(clone(100, 0, 4096), Status::kInval);
  EXPECT_EQ(clone(0, 100, 4096), Status::kInval);
  EXPECT_EQ(clone(0, 0, 4097), Status::kInval);
  // The rest of the grain would be lost.
  EXPECT_EQ(clone(8192, 8192, 0), Status::kInval);
  EXPECT_EQ(clone(0, 0, 16384), Status::kInval);
  EXPECT_EQ(clone(16384, 0, 0), Status::kInval);
  EXPECT_EQ(clone(0, kFileSizeMax - 4095, 4096), Status::kFBig);
  EXPECT_EQ(world_.clone({.client = kBob, .source = source_, .target = source_, .target_offset = 4096}),
            Status::kInval);
  EXPECT_EQ(world_.clone({.client = kBob, .source = source_, .target = 4711}), Status::kStale);
  EXPECT_TRUE(target(0, 20000) == pattern(20000));
  EXPECT_EQ(clone(8192, 20480, 0), Status::kOk);
  EXPECT_TRUE(target(20480, 5000) == pattern(10000 - 8192));
  world_.check("refused");
}

// Somebody else had it until a moment ago: a crash may give it back to him.
TEST_F(FileCloneTest, WhatIsOnesOwnAgainIsWrittenWhenThatIsDurable) {
  ASSERT_EQ(world_.write(source_, 0, pattern(kBlock)), Status::kOk);
  ASSERT_EQ(clone(), Status::kOk);
  size_t writes = 0;
  world_.memory->before_write = [&] {
    ++writes;
    EXPECT_GE(world_.store.synced_sequence(), world_.store.last_namespace_sequence());
  };
  Batch batch;
  ExtentChange extents(world_.store, target_);
  SharedChange shares(world_.store);
  const auto removed = extents.remove(0, kBlock);
  for (const Extent& extent : *removed) ASSERT_TRUE(shares.drop({extent.logical, extent.length})->empty());
  extents.write_to(batch);
  shares.write_to(batch);
  ASSERT_TRUE(world_.names->update(target_, {.space_used = 0, .space_only = true}, batch));
  ASSERT_LT(world_.store.synced_sequence(), world_.store.last_namespace_sequence());
  ASSERT_EQ(world_.write(source_, 0, pattern(100), nfs4::StableHow::kUnstable), Status::kOk);
  EXPECT_EQ(writes, 1u);
  EXPECT_EQ(world_.brick.copied, 0u);
  world_.check("written");
}

// Who may write the target behind the end of the clone commits that when he is asked to leave.
TEST_F(FileCloneTest, WhatAWriterOfTheTargetHadBehindTheCloneStays) {
  ASSERT_EQ(world_.write(source_, 0, pattern(1000)), Status::kOk);
  ASSERT_EQ(world_.write(target_, 0, pattern(500)), Status::kOk);
  const auto layout = world_.get(kAlice, target_, IoMode::kReadWrite, 0, UINT64_MAX, 4096);
  ASSERT_TRUE(layout);
  ASSERT_TRUE(world_.brick.client_write(kAlice, world_.segments(layout)[0].write.grant, 1000,
                                        static_cast<std::byte>(pattern(1)[0]), 2000));
  world_.recaller.on_recall = [&](const LayoutRecall& recall) {
    world_.loop.post([&, recall] {
      CommitRequest request{
          .client = kAlice, .inode = target_, .stateid = world_.stateid_of(layout), .range = {0, 3000}};
      request.last_write_offset = 2999;
      world_.mds->committer().commit(request, [](const auto&) {});
      world_.mds->layouts().give_back(recall.client, recall.inode, {0, kEndOfFile}, IoMode::kAny, [] {});
    });
  };
  EXPECT_EQ(clone(), Status::kDelay);
  EXPECT_EQ(clone(), Status::kInval);
  EXPECT_EQ(world_.stat(target_)->size, 3000u);
  EXPECT_TRUE(target(1000, 2000) == pattern(2000));
  world_.check("refused");
}

// The hole was to end with the file, in a grain that another file has, too.
TEST_F(FileCloneTest, AHoleUpToAnEndThatMovesLeavesTheOtherFile) {
  ASSERT_EQ(world_.write(source_, 0, pattern(5000)), Status::kOk);
  ASSERT_EQ(clone(), Status::kOk);
  const auto layout = world_.get(kAlice, target_, IoMode::kReadWrite, 8192, UINT64_MAX, 4096);
  ASSERT_TRUE(layout);
  world_.brick.hold_copies = true;
  std::optional<Status> status;
  world_.mds->ranges().deallocate({.client = kBob, .inode = target_}, {100, 5000},
                                  [&](Status got) { status = got; });
  world_.settle();
  ASSERT_FALSE(status) << "the first grain is being copied";
  ASSERT_EQ(world_.commit(kAlice, target_, world_.stateid_of(layout), {8192, 9000}, 8999), Status::kOk);
  world_.brick.release();
  world_.settle();
  EXPECT_EQ(status, Status::kDelay);
  EXPECT_TRUE(source(0, 5000) == pattern(5000));
  ASSERT_EQ(world_.deallocate(target_, {100, 5000}), Status::kOk);
  EXPECT_TRUE(source(0, 5000) == pattern(5000));
  EXPECT_TRUE(target(0, 5000) == pattern(100) + zeros(4900));
  world_.check("punched");
}

TEST_F(FileCloneTest, WhatIsAllocatedNeedsNoMemoryWhenItIsWritten) {
  ASSERT_EQ(world_.write(source_, 0, pattern(3 * kBlock)), Status::kOk);
  ASSERT_EQ(clone(), Status::kOk);
  ASSERT_EQ(world_.allocate(target_, {0, 3 * kBlock}), Status::kOk);
  EXPECT_EQ(world_.brick.copied, 3 * kBlock);
  EXPECT_TRUE(target(0, 3 * kBlock) == pattern(3 * kBlock));
  ASSERT_EQ(world_.write(target_, kBlock, pattern(10)), Status::kOk);
  EXPECT_EQ(world_.brick.copied, 3 * kBlock);
  world_.check("allocated");
}

// Who wants very much at once gets it in parts.
TEST_F(FileCloneTest, OneRequestCopiesSoMuchAtMost) {
  LayoutWorld world(80);
  world.obey_recalls();
  const InodeId file = world.create("file");
  ASSERT_EQ(world.allocate(file, {0, 34 * kBlock}), Status::kOk);
  ASSERT_EQ(world.clone({.client = kBob, .source = file, .target = world.create("clone")}), Status::kOk);
  EXPECT_FALSE(world.get(kAlice, file, IoMode::kReadWrite, 0, 34 * kBlock, 34 * kBlock));
  EXPECT_EQ(world.brick.copied, uint64_t{64} << 20);
  EXPECT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 34 * kBlock, 34 * kBlock));
  EXPECT_EQ(world.brick.copied, 34 * kBlock);
}

class FullBricks : public ::testing::Test {
 protected:
  static std::string pattern(InodeId file, size_t count) {
    return std::string(count, static_cast<char>('A' + file % 26));
  }
  // A clone of it.
  static InodeId clone(LayoutWorld& world, InodeId file) {
    for (int i = 0; i < 25; ++i) world.create("between" + std::to_string(i));
    const InodeId target = world.create("target");
    EXPECT_EQ(world.clone({.client = kBob, .source = file, .target = target}), Status::kOk);
    return target;
  }
};

TEST_F(FullBricks, WithoutRoomForACopyAWriteIsRefusedAndNothingElse) {
  LayoutWorld world(6);
  world.obey_recalls();
  const InodeId source = world.create("source");
  ASSERT_EQ(world.write(source, 0, pattern(source, 4 * kBlock)), Status::kOk);
  const InodeId target = clone(world, source);
  uint64_t at = 0;
  Status status = Status::kOk;
  for (; at < 4 * kBlock; at += kGrainSize) {
    status = world.write(target, at, std::string(1, '\0'));
    if (status != Status::kOk) break;
  }
  EXPECT_EQ(status, Status::kNoSpc);
  EXPECT_EQ(at, 2 * kBlock) << "all that was free was used";
  EXPECT_EQ(world.get(kAlice, target, IoMode::kReadWrite, at, kBlock, 4096).error(), Status::kNoSpc);
  EXPECT_EQ(world.set_size(target, 3 * kBlock + 5), Status::kNoSpc);
  EXPECT_TRUE(world.read(target, at, 10) == pattern(target, 10));
  EXPECT_TRUE(world.read(source, 0, 4 * kBlock) == pattern(source, 4 * kBlock));
  world.check("full");
  // What is his alone by then can be written with nothing free.
  ASSERT_EQ(world.set_size(source, 3 * kBlock), Status::kOk);
  EXPECT_EQ(world.write(target, 3 * kBlock + 7, pattern(target, 1)), Status::kOk);
  world.check("source cut");
}

// Who copies a file to move it away is not to leave it there.
TEST_F(FullBricks, OfABrickThatIsBeingDrainedNothingIsCloned) {
  LayoutWorld world(8, {8});
  world.obey_recalls();
  const InodeId source = world.create("source");
  ASSERT_EQ(world.write(source, 0, pattern(source, kBlock)), Status::kOk);
  const InodeId target = clone(world, source);
  BrickRecord record = *world.list->find(world.list->brick_of(world.extents(source)[0].logical));
  record.leaving = true;
  ASSERT_TRUE(world.list->update(record));
  const InodeId other = world.create("other");
  EXPECT_EQ(world.clone({.client = kBob, .source = source, .target = other}), Status::kXDev);
  EXPECT_TRUE(world.extents(other).empty());
  // A change of what is shared goes to another brick, too.
  ASSERT_EQ(world.write(target, 0, pattern(target, 1)), Status::kOk);
  EXPECT_NE(world.list->brick_of(world.extents(target)[0].logical), record.number);
  world.check("draining");
}

TEST_F(FullBricks, ACopyGoesToAnotherBrickWhereThereIsRoom) {
  LayoutWorld world(4, {4});
  world.obey_recalls();
  const InodeId source = world.create("source");
  ASSERT_EQ(world.write(source, 0, pattern(source, 4 * kBlock)), Status::kOk);
  const InodeId target = clone(world, source);
  ASSERT_EQ(world.write(target, kBlock + 5, std::string(1, '\0')), Status::kOk);
  EXPECT_EQ(world.extents(source).size(), 1u);
  const BrickNumber home = world.list->brick_of(world.extents(source)[0].logical);
  EXPECT_NE(world.list->brick_of(world.extents(target)[1].logical), home);
  EXPECT_EQ(world.brick.copied + world.others[0].copied, 0u);
  EXPECT_TRUE(world.read(source, 0, 4 * kBlock) == pattern(source, 4 * kBlock));
  EXPECT_TRUE(world.read(target, kBlock, 10) ==
              pattern(target, 5) + std::string(1, '\0') + pattern(target, 4));
  world.check("written");
  world.crash(0);
  world.start();
  EXPECT_TRUE(world.read(target, kBlock, 10) ==
              pattern(target, 5) + std::string(1, '\0') + pattern(target, 4));
  world.check("restarted");
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
