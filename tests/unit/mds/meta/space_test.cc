// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/space.h"

#include <gtest/gtest.h>

#include "server/mds/meta/brick_list.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using brick::kBlockSize;

class Allocation : public ::testing::Test {
 protected:
  Space* open() {
    list_ = BrickList::open(store_, clock_).value();
    if (list_->numbers().empty()) static_cast<void>(list_->add("brick", true).value());
    space_ = &list_->space(kFirstBrick);
    space_->set_capacity(uint64_t{1} << 40);
    return space_;
  }
  void restart() {
    ASSERT_TRUE(store_.sync());
    store_.crash(0);
    open();
  }
  // Commits an extent of its own file.
  void record(uint64_t logical, uint64_t length) {
    ExtentChange change(store_, next_file_++);
    ASSERT_TRUE(change.insert({0, logical, length}));
    Batch batch;
    change.write_to(batch);
    ASSERT_TRUE(store_.commit(batch, CommitKind::kNamespace));
  }
  Result<Taken> take(uint64_t grains) {
    auto taken = space_->take({.hard = grains});
    if (taken && taken->fresh) space_->allocated(*taken->fresh);
    return taken;
  }
  Result<uint64_t> take_blocks(uint64_t count) {
    const auto taken = take(count * kGrainsPerBlock);
    if (!taken) return std::unexpected(taken.error());
    return taken->fresh->logical;
  }
  std::vector<Piece> take_grains(uint64_t grains) { return take(grains).value().pieces; }
  // A block whose first grain is used; from where on it is not.
  uint64_t shared_block() {
    const Taken taken = take(1).value();
    EXPECT_EQ(taken.fresh, (brick::Run{taken.pieces.front().logical, 1}));
    return taken.pieces.front().logical + kGrainSize;
  }
  void wait_for_quarantine() { clock_.advance(Milliseconds(brick::kQuarantineMs)); }

  ManualClock clock_;
  EventLoop loop_{clock_};
  MemoryStore store_{loop_, MemoryStore::Syncing::kManual};
  std::unique_ptr<BrickList> list_;
  Space* space_ = open();
  InodeId next_file_ = 100;
};

TEST_F(Allocation, BlocksHaveConsecutiveAddressesNeverUsedBefore) {
  const uint64_t first = take_blocks(4).value();
  const Taken second = space_->take({.hard = kGrainsPerBlock}).value();
  EXPECT_NE(first, 0u);
  EXPECT_EQ(second.fresh->logical, first + 4 * kBlockSize);
  space_->refused(*second.fresh);
  EXPECT_GT(take_blocks(1).value(), second.fresh->logical);
  EXPECT_EQ(space_->used_blocks(), 5u);
}

TEST_F(Allocation, ABrickThatHasLessThanItSaysIsBelieved) {
  space_->set_capacity(4);
  const Taken taken = space_->take({.hard = 3 * kGrainsPerBlock}).value();
  space_->lacks(*taken.fresh);
  EXPECT_EQ(take_blocks(3).error().number(), ENOSPC);
  EXPECT_TRUE(take_blocks(2));
  EXPECT_EQ(take_blocks(1).error().number(), ENOSPC);
}

TEST_F(Allocation, AddressesAreNotUsedAgainAfterARestart) {
  const uint64_t first = take_blocks(3).value();
  record(first, kBlockSize);
  restart();
  EXPECT_GE(take_blocks(1).value(), first + 3 * kBlockSize);
}

TEST_F(Allocation, AddressesAreSafeWheneverAnExtentThatNamesThemIs) {
  const uint64_t logical = take_blocks(1).value();
  record(logical, kBlockSize);
  store_.crash(store_.unsynced());
  open();
  EXPECT_GT(take_blocks(1).value(), logical);
}

TEST_F(Allocation, AStallingStoreIsTryAgain) {
  store_.stall(1);
  EXPECT_EQ(take_blocks(1).error().number(), EAGAIN);
  EXPECT_TRUE(take_blocks(1));
}

TEST_F(Allocation, AddressesRunOutPolitely) {
  EXPECT_EQ(take_blocks(kBlocksPerZone).error().number(), ENOSPC);
  EXPECT_EQ(space_->take({.hard = UINT64_MAX}).error().number(), ENOSPC);
  EXPECT_EQ(space_->used_blocks(), 0u);
}

TEST_F(Allocation, IsRebuiltFromTheExtentsWithNothingFreeKnownToBeClean) {
  const uint64_t base = take_blocks(3).value();
  const uint64_t block = shared_block();
  record(base, 3 * kBlockSize);
  record(block - kGrainSize, kGrainSize);
  const auto piece = take_grains(5).front();
  record(piece.logical, piece.length);
  restart();
  EXPECT_EQ(space_->used_blocks(), 4u);
  EXPECT_EQ(space_->free_grain_bytes(), kBlockSize - 6 * kGrainSize);
  EXPECT_EQ(take_grains(1).front(), (Piece{block + 5 * kGrainSize, kGrainSize, false}));
  EXPECT_EQ(space_->free(base, 3 * kBlockSize), (std::vector<brick::Run>{{base, 3}}));
}

TEST_F(Allocation, FreedGrainsRestAndAreThenNotClean) {
  space_->set_capacity(1);
  const uint64_t block = shared_block();
  take_grains(kGrainsPerBlock - 3);
  const auto freed = take_grains(2).front();
  EXPECT_TRUE(space_->free(freed.logical, freed.length).empty());
  EXPECT_EQ(take(1).error().number(), EAGAIN);
  EXPECT_EQ(space_->unused_bytes(), 2 * kGrainSize);
  wait_for_quarantine();
  EXPECT_EQ(take_grains(1), (std::vector<Piece>{{block + kBlockSize - 3 * kGrainSize, kGrainSize, false}}));
}

TEST_F(Allocation, ExtentsThatOverlapAreNotServed) {
  record(kBlockSize, 2 * kBlockSize);
  record(2 * kBlockSize, kBlockSize);
  const auto opened = BrickList::open(store_, clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number(), EUCLEAN);
}

TEST_F(Allocation, AnExtentThatIsNotWholeGrainsIsNotServed) {
  Batch batch;
  put_value(batch, number_key(kExtentTag, 7, kGrainSize), StoredExtent{kBlockSize + 512, kGrainSize});
  ASSERT_TRUE(store_.commit(batch, CommitKind::kNamespace));
  const auto opened = BrickList::open(store_, clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number(), EUCLEAN);
}

TEST_F(Allocation, ComparingWithTheBrickFindsLeaksAndLosses) {
  const uint64_t base = take_blocks(4).value();
  record(base, 4 * kBlockSize);
  restart();
  const uint64_t beyond = base + 100 * kBlockSize;
  const auto difference =
      space_->compare({{beyond, 2}, {base + kBlockSize, 1}, {base, 1}, {base + 3 * kBlockSize, 2}});
  EXPECT_EQ(difference.leaked, (std::vector<brick::Run>{{base + 4 * kBlockSize, 1}, {beyond, 2}}));
  EXPECT_EQ(difference.missing, (std::vector<brick::Run>{{base + 2 * kBlockSize, 1}}));
}

TEST_F(Allocation, ComparingMayStopAndGoOn) {
  const uint64_t base = take_blocks(4).value();
  record(base, 4 * kBlockSize);
  restart();
  const std::vector<brick::Run> listed{
      {base + kBlockSize, 1}, {base + 3 * kBlockSize, 1}, {base + 4 * kBlockSize, 1}};
  const auto first = space_->compare(listed, 0, UINT64_MAX, 1);
  EXPECT_EQ(first.missing, (std::vector<brick::Run>{{base, 1}}));
  EXPECT_TRUE(first.leaked.empty());
  const auto rest = space_->compare(listed, base + kBlockSize, UINT64_MAX, 2);
  EXPECT_EQ(rest.missing, (std::vector<brick::Run>{{base + 2 * kBlockSize, 1}}));
  EXPECT_EQ(rest.leaked, (std::vector<brick::Run>{{base + 4 * kBlockSize, 1}}));
}

}  // namespace
}  // namespace pnfsrdma::mds
