// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/file_ranges.h"

#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::ContentType;
using nfs4::Status;

std::string zeros(size_t count) {
  return std::string(count, '\0');
}

class FileRangesTest : public ::testing::Test {
 protected:
  std::string pattern(size_t count) const { return std::string(count, static_cast<char>('A' + file_ % 26)); }
  void expect_found(uint64_t from, ContentType what, uint64_t offset, bool end = false) {
    const auto found = world_.seek(file_, from, what);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->offset, offset);
    EXPECT_EQ(found->end_of_file, end);
  }

  LayoutWorld world_{8};
  const InodeId file_ = world_.create("f");
};

// --- DEALLOCATE

TEST_F(FileRangesTest, DeallocateFreesWholeGrainsAndZeroesTheRest) {
  ASSERT_EQ(world_.write(file_, 0, pattern(65536)), Status::kOk);
  const uint64_t change = world_.stat(file_)->change;
  EXPECT_EQ(world_.deallocate(file_, {5000, 40000}), Status::kOk);
  EXPECT_EQ(world_.read(file_, 0, 65536), pattern(5000) + zeros(35000) + pattern(25536));
  EXPECT_EQ(world_.stat(file_)->size, 65536u);
  EXPECT_EQ(world_.stat(file_)->space_used, 65536u - (36864 - 8192));
  EXPECT_GT(world_.stat(file_)->change, change);
  world_.check("punched");
}

TEST_F(FileRangesTest, WithinAGrainNothingIsFreed) {
  ASSERT_EQ(world_.write(file_, 0, pattern(8192)), Status::kOk);
  EXPECT_EQ(world_.deallocate(file_, {100, 200}), Status::kOk);
  EXPECT_EQ(world_.read(file_, 0, 300), pattern(100) + zeros(100) + pattern(100));
  EXPECT_EQ(world_.stat(file_)->space_used, 8192u);
}

TEST_F(FileRangesTest, UpToTheEndItTakesTheLastGrainToo) {
  ASSERT_EQ(world_.write(file_, 0, pattern(10000)), Status::kOk);
  EXPECT_EQ(world_.deallocate(file_, {4096, 1 << 20}), Status::kOk);
  EXPECT_EQ(world_.stat(file_)->size, 10000u);
  EXPECT_EQ(world_.stat(file_)->space_used, 4096u);
  EXPECT_EQ(world_.read(file_, 4096, 10000), zeros(5904));
  world_.check("punched");
}

TEST_F(FileRangesTest, WithinTheLastGrainNothingIsFreedEither) {
  ASSERT_EQ(world_.write(file_, 0, pattern(380)), Status::kOk);
  EXPECT_EQ(world_.deallocate(file_, {365, 380}), Status::kOk);
  EXPECT_TRUE(world_.read(file_, 0, 1000) == pattern(365) + zeros(15));
  EXPECT_EQ(world_.deallocate(file_, {0, 380}), Status::kOk);
  EXPECT_TRUE(world_.extents(file_).empty());
}

TEST_F(FileRangesTest, AHoleOfAllIsAFileWithoutMemory) {
  ASSERT_EQ(world_.write(file_, 0, pattern(300000)), Status::kOk);
  EXPECT_EQ(world_.deallocate(file_, {0, UINT64_MAX}), Status::kOk);
  EXPECT_TRUE(world_.extents(file_).empty());
  EXPECT_TRUE(world_.brick.blocks.empty());
  EXPECT_EQ(world_.stat(file_)->size, 300000u);
  EXPECT_EQ(world_.deallocate(file_, {0, 1000}), Status::kOk) << "a hole already";
  EXPECT_EQ(world_.deallocate(file_, {300000, 400000}), Status::kOk) << "behind the end";
  world_.check("punched");
}

TEST_F(FileRangesTest, LayoutsThereAreRecalledFirst) {
  ASSERT_EQ(world_.write(file_, 0, pattern(65536)), Status::kOk);
  ASSERT_TRUE(world_.get(kAlice, file_, IoMode::kReadWrite, 0, 65536));
  EXPECT_EQ(world_.deallocate(file_, {8192, 16384}), std::nullopt);
  ASSERT_EQ(world_.recaller.recalls.size(), 1u);
  const LayoutRecall recall = world_.recaller.recalls.front();
  EXPECT_TRUE(world_.give_back(kAlice, file_, recall.offset, recall.length));
  world_.settle();
  EXPECT_TRUE(world_.read(file_, 8192, 8192) == zeros(8192));
  world_.check("punched");
}

TEST_F(FileRangesTest, WhoeverDoesNotGiveItBackIsADelay) {
  ASSERT_EQ(world_.write(file_, 0, pattern(65536)), Status::kOk);
  ASSERT_TRUE(world_.get(kAlice, file_, IoMode::kReadWrite, 0, 65536));
  std::optional<Status> status;
  world_.mds->ranges().deallocate({.client = kBob, .inode = file_}, {0, 8192},
                                  [&](Status got) { status = got; });
  world_.pass(kRecallPatience + Milliseconds(100));
  EXPECT_EQ(status, Status::kDelay);
  EXPECT_EQ(world_.read(file_, 0, 8192), pattern(8192));
}

TEST_F(FileRangesTest, WithItsBrickAwayItIsADelay) {
  ASSERT_EQ(world_.write(file_, 0, pattern(65536)), Status::kOk);
  world_.plug.down(LayoutWorld::kBrick);
  EXPECT_EQ(world_.deallocate(file_, {0, 8192}), Status::kDelay);
}

// --- ALLOCATE

TEST_F(FileRangesTest, AllocateFillsHolesWithZerosAndLetsTheFileGrow) {
  ASSERT_EQ(world_.write(file_, 8192, pattern(100)), Status::kOk);
  EXPECT_EQ(world_.allocate(file_, {0, 100000}), Status::kOk);
  EXPECT_EQ(world_.stat(file_)->size, 100000u);
  EXPECT_GE(world_.stat(file_)->space_used, 100000u);
  EXPECT_EQ(world_.read(file_, 0, 100000), zeros(8192) + pattern(100) + zeros(100000 - 8292));
  expect_found(0, ContentType::kHole, 100000, true);
  world_.check("allocated");
}

TEST_F(FileRangesTest, AllocateInsideLeavesTheSize) {
  ASSERT_EQ(world_.set_size(file_, 1 << 20), Status::kOk);
  EXPECT_EQ(world_.allocate(file_, {4096, 8192}), Status::kOk);
  EXPECT_EQ(world_.stat(file_)->size, uint64_t{1} << 20);
  EXPECT_EQ(world_.stat(file_)->space_used, kSparseUnit);
}

TEST_F(FileRangesTest, WhatCanNeverFitIsRefusedBeforeAnythingIsDone) {
  EXPECT_EQ(world_.allocate(file_, {0, uint64_t{1} << 40}), Status::kNoSpc);
  EXPECT_EQ(world_.stat(file_)->size, 0u);
  EXPECT_EQ(world_.stat(file_)->space_used, 0u);
  EXPECT_EQ(world_.allocate(file_, {0, UINT64_MAX}), Status::kFBig);
}

TEST_F(FileRangesTest, WhoeverSeesAHoleThereIsAskedFirst) {
  ASSERT_EQ(world_.set_size(file_, 65536), Status::kOk);
  ASSERT_TRUE(world_.get(kAlice, file_, IoMode::kRead, 0, 65536));
  world_.obey_recalls();
  EXPECT_EQ(world_.allocate(file_, {0, 65536}), Status::kOk);
  EXPECT_EQ(world_.recaller.recalls.size(), 1u);
}

TEST_F(FileRangesTest, MoreThanASliceIsAllocatedInTurns) {
  LayoutWorld world(96);
  const InodeId file = world.create("f");
  const uint64_t size = 2 * FileRanges::kSliceBytes + 5000;
  EXPECT_EQ(world.allocate(file, {0, size}), Status::kOk);
  EXPECT_EQ(world.stat(file)->size, size);
  EXPECT_GE(world.stat(file)->space_used, size);
  world.check("allocated");
}

// Each with a hole behind it.
TEST_F(FileRangesTest, ManyHolesAreFilledSoManyATurn) {
  constexpr uint64_t kHoles = 2 * FileRanges::kExtentsPerTurn + 100;
  constexpr size_t kLooks = 6;  // of one turn, at the same extents
  LayoutWorld world(16);
  const InodeId file = world.create_sparse("f", kHoles);
  world.store.largest = 0;
  size_t rows_of_a_turn = 0;
  std::optional<Status> status;
  world.mds->ranges().allocate({.client = kBob, .inode = file}, {0, kHoles * 2 * kGrainSize},
                               [&](Status got) { status = got; });
  for (int i = 0; i < 100 && !status; ++i) {
    const size_t before = world.store.rows_visited;
    world.loop.run_once(Milliseconds(0));
    rows_of_a_turn = std::max(rows_of_a_turn, world.store.rows_visited - before);
  }
  EXPECT_EQ(status, Status::kOk);
  EXPECT_EQ(world.stat(file)->space_used, kHoles * kGrainSize);
  const auto mapped = Extents(world.store).map(file, 0, kHoles * 2 * kGrainSize);
  EXPECT_TRUE(std::ranges::all_of(*mapped, [](const Mapping& part) { return part.logical.has_value(); }));
  EXPECT_LE(world.store.largest, 3 * FileRanges::kExtentsPerTurn);
  EXPECT_LE(rows_of_a_turn, kLooks * FileRanges::kExtentsPerTurn);
}

// --- SEEK

TEST_F(FileRangesTest, SeekFindsDataAndHoles) {
  ASSERT_EQ(world_.write(file_, 65536, pattern(16384)), Status::kOk);
  ASSERT_EQ(world_.set_size(file_, 1 << 20), Status::kOk);
  expect_found(0, ContentType::kData, 65536);
  expect_found(70000, ContentType::kData, 70000);
  expect_found(90000, ContentType::kData, 1 << 20, true);
  expect_found(0, ContentType::kHole, 0);
  expect_found(65536, ContentType::kHole, 81920);
  expect_found(90000, ContentType::kHole, 90000);
  EXPECT_EQ(world_.seek(file_, 1 << 20, ContentType::kData).error(), Status::kNxIo);
}

TEST_F(FileRangesTest, TheEndIsAHole) {
  ASSERT_EQ(world_.write(file_, 0, pattern(10000)), Status::kOk);
  expect_found(100, ContentType::kHole, 10000, true);
}

TEST_F(FileRangesTest, ManyExtentsInARowAreOneStretchOfData) {
  LayoutWorld world(64);
  const InodeId one = world.create("one");
  const InodeId other = world.create("other");
  const uint64_t pieces = FileRanges::kExtentsPerTurn + 10;
  // In turns, so that neither goes on where it ended.
  for (uint64_t i = 0; i < pieces; ++i) {
    ASSERT_EQ(world.write(one, i * kSparseUnit, std::string(kSparseUnit, static_cast<char>('A' + one % 26))),
              Status::kOk);
    ASSERT_EQ(
        world.write(other, i * kSparseUnit, std::string(kSparseUnit, static_cast<char>('A' + other % 26))),
        Status::kOk);
  }
  const auto found = world.seek(one, 0, ContentType::kHole);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offset, pieces * kSparseUnit);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
