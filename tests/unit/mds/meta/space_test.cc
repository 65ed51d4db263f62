// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/space.h"

#include <gtest/gtest.h>

#include "server/mds/meta/brick_list.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using brick::kBlockSize;

class Allocation : public testing::Test {
 protected:
  Space* open() {
    list_ = BrickList::open(store_, clock_).value();
    if (list_->numbers().empty()) static_cast<void>(list_->add("brick", true).value());
    space_ = &list_->space(kFirstBrick);
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
  // A block whose first grain is used; from where on it is not.
  uint64_t shared_block() {
    const uint64_t block = space_->take_blocks(1).value();
    EXPECT_EQ(space_->share_block(block, 1), (Piece{block, kGrainSize, true}));
    return block + kGrainSize;
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
  const uint64_t first = space_->take_blocks(4).value();
  const uint64_t second = space_->take_blocks(1).value();
  EXPECT_NE(first, 0u);
  EXPECT_EQ(second, first + 4 * kBlockSize);
  space_->give_up_blocks(second, 1);
  EXPECT_GT(space_->take_blocks(1).value(), second);
  EXPECT_EQ(space_->used_blocks(), 5u);
}

TEST_F(Allocation, AddressesAreNotUsedAgainAfterARestart) {
  const uint64_t first = space_->take_blocks(3).value();
  record(first, kBlockSize);
  restart();
  EXPECT_GE(space_->take_blocks(1).value(), first + 3 * kBlockSize);
}

TEST_F(Allocation, AddressesAreSafeWheneverAnExtentThatNamesThemIs) {
  const uint64_t logical = space_->take_blocks(1).value();
  record(logical, kBlockSize);
  store_.crash(store_.unsynced());
  open();
  EXPECT_GT(space_->take_blocks(1).value(), logical);
}

TEST_F(Allocation, AStallingStoreIsTryAgain) {
  store_.stall(1);
  EXPECT_EQ(space_->take_blocks(1).error().number(), EAGAIN);
  EXPECT_TRUE(space_->take_blocks(1));
}

TEST_F(Allocation, AddressesRunOutPolitely) {
  EXPECT_EQ(space_->take_blocks(uint64_t{1} << 42).error().number(), ENOSPC);
  EXPECT_EQ(space_->take_blocks(UINT64_MAX).error().number(), ENOSPC);
  EXPECT_EQ(space_->take_blocks(0).error().number(), EINVAL);
}

TEST_F(Allocation, SmallFilesShareABlock) {
  EXPECT_TRUE(space_->take_grains(1).empty());
  const uint64_t block = shared_block();
  const auto first = space_->take_grains(1);
  const auto second = space_->take_grains(kGrainSize + 1);
  EXPECT_EQ(first, (std::vector<Piece>{{block, kGrainSize, true}}));
  EXPECT_EQ(second, (std::vector<Piece>{{block + kGrainSize, 2 * kGrainSize, true}}));
  EXPECT_EQ(space_->free_grain_bytes(), kBlockSize - 4 * kGrainSize);
}

TEST_F(Allocation, MoreThanABlockIsNoSmallFile) {
  shared_block();
  EXPECT_TRUE(space_->take_grains(kBlockSize + 1).empty());
  EXPECT_TRUE(space_->take_grains(0).empty());
  EXPECT_TRUE(space_->take_grains(kBlockSize).empty());  // one grain of it is somebody's
  EXPECT_EQ(space_->take_grains(kBlockSize - kGrainSize).size(), 1u);
  EXPECT_TRUE(space_->take_grains(1).empty());
}

TEST_F(Allocation, WhatNobodyReachedGoesBackAsCleanAsItWas) {
  const uint64_t block = shared_block();
  const auto piece = space_->take_grains(kBlockSize - kGrainSize).front();
  EXPECT_TRUE(space_->put_back(piece).empty());
  EXPECT_EQ(space_->take_grains(1).front(), (Piece{block, kGrainSize, true}));
}

TEST_F(Allocation, FreedGrainsRestAndAreThenNotClean) {
  const uint64_t block = shared_block();
  const auto kept = space_->take_grains(kBlockSize - 3 * kGrainSize);
  const auto freed = space_->take_grains(2 * kGrainSize).front();
  EXPECT_TRUE(space_->free(freed.logical, freed.length).empty());
  EXPECT_TRUE(space_->take_grains(kGrainSize).empty());
  wait_for_quarantine();
  const auto again = space_->take_grains(kGrainSize);
  EXPECT_EQ(again, (std::vector<Piece>{{block + kBlockSize - 3 * kGrainSize, kGrainSize, false}}));
}

TEST_F(Allocation, CleanGrainsAreTakenBeforeOthers) {
  const uint64_t block = shared_block();
  const auto first = space_->take_grains(kGrainSize).front();
  space_->take_grains(kGrainSize);
  space_->free(first.logical, first.length);
  wait_for_quarantine();
  EXPECT_EQ(space_->take_grains(kGrainSize).front(), (Piece{block + 2 * kGrainSize, kGrainSize, true}));
}

TEST_F(Allocation, SeveralPiecesAreBetterThanNone) {
  const uint64_t block = shared_block();
  std::vector<Piece> taken;
  for (int i = 0; i < 8; ++i) taken.push_back(space_->take_grains((i < 7 ? 64 : 63) * kGrainSize).front());
  for (int i = 0; i < 8; i += 2) space_->free(taken[i].logical, taken[i].length);
  wait_for_quarantine();
  const auto pieces = space_->take_grains(100 * kGrainSize);
  EXPECT_EQ(pieces, (std::vector<Piece>{{block, 64 * kGrainSize, false},
                                        {block + 128 * kGrainSize, 36 * kGrainSize, false}}));
  EXPECT_TRUE(space_->take_grains(kBlockSize).empty());
  EXPECT_EQ(space_->free_grain_bytes(), 156 * kGrainSize);
}

TEST_F(Allocation, AnEmptySharedBlockGoesBackToTheBrick) {
  const uint64_t block = shared_block() - kGrainSize;
  const auto next = space_->take_grains(kGrainSize).front();
  EXPECT_TRUE(space_->free(block, kGrainSize).empty());
  EXPECT_EQ(space_->free(next.logical, next.length), (std::vector<brick::Run>{{block, 1}}));
  EXPECT_EQ(space_->used_blocks(), 0u);
  wait_for_quarantine();
  EXPECT_TRUE(space_->take_grains(1).empty());
}

TEST_F(Allocation, ALargeFileGivesWholeBlocksBackAndSharesTheRest) {
  const uint64_t base = space_->take_blocks(4).value();
  const auto runs = space_->free(base + kBlockSize + 10 * kGrainSize, 3 * kBlockSize - 10 * kGrainSize);
  EXPECT_EQ(runs, (std::vector<brick::Run>{{base + 2 * kBlockSize, 2}}));
  EXPECT_EQ(space_->used_blocks(), 2u);
  wait_for_quarantine();
  EXPECT_EQ(space_->take_grains(kGrainSize).front(),
            (Piece{base + kBlockSize + 10 * kGrainSize, kGrainSize, false}));
}

TEST_F(Allocation, TheZeroerTakesWhatIsNotCleanAndGivesItBackClean) {
  const uint64_t block = shared_block();
  space_->take_grains(kBlockSize - 4 * kGrainSize);
  const auto freed = space_->take_grains(3 * kGrainSize).front();
  EXPECT_FALSE(space_->take_dirty(kBlockSize));
  space_->free(freed.logical, freed.length);
  wait_for_quarantine();
  auto dirty = space_->take_dirty(kBlockSize);
  ASSERT_TRUE(dirty);
  EXPECT_EQ(*dirty, (Piece{freed.logical, 3 * kGrainSize, false}));
  EXPECT_TRUE(space_->take_grains(1).empty());
  dirty->clean = true;
  EXPECT_TRUE(space_->put_back(*dirty).empty());
  EXPECT_EQ(space_->take_grains(1).front(), (Piece{block + kBlockSize - 4 * kGrainSize, kGrainSize, true}));
}

TEST_F(Allocation, ABlockThatEmptiedWhileItWasZeroedGoesBackToTheBrick) {
  const uint64_t block = shared_block() - kGrainSize;
  const auto kept = space_->take_grains(kGrainSize).front();
  space_->free(block, kGrainSize);
  wait_for_quarantine();
  auto dirty = space_->take_dirty(kGrainSize);
  ASSERT_TRUE(dirty);
  EXPECT_TRUE(space_->free(kept.logical, kept.length).empty());
  dirty->clean = true;
  EXPECT_EQ(space_->put_back(*dirty), (std::vector<brick::Run>{{block, 1}}));
  EXPECT_EQ(space_->used_blocks(), 0u);
  wait_for_quarantine();
  EXPECT_TRUE(space_->take_grains(1).empty());
}

TEST_F(Allocation, AFreshBlockHoldsWhatItWasMadeForThoughThereIsRoomElsewhere) {
  shared_block();
  const uint64_t second = shared_block();
  EXPECT_EQ(space_->free(second - kGrainSize, kGrainSize),
            (std::vector<brick::Run>{{second - kGrainSize, 1}}));
}

TEST_F(Allocation, IsRebuiltFromTheExtentsWithNothingFreeKnownToBeClean) {
  const uint64_t base = space_->take_blocks(3).value();
  const uint64_t block = shared_block();
  record(base, 3 * kBlockSize);
  record(block - kGrainSize, kGrainSize);
  const auto piece = space_->take_grains(5 * kGrainSize).front();
  record(piece.logical, piece.length);
  restart();
  EXPECT_EQ(space_->used_blocks(), 4u);
  EXPECT_EQ(space_->free_grain_bytes(), kBlockSize - 6 * kGrainSize);
  EXPECT_EQ(space_->take_grains(1).front(), (Piece{block + 5 * kGrainSize, kGrainSize, false}));
  EXPECT_EQ(space_->free(base, 3 * kBlockSize), (std::vector<brick::Run>{{base, 3}}));
}

TEST_F(Allocation, ExtentsThatOverlapAreNotServed) {
  record(kBlockSize, 2 * kBlockSize);
  record(2 * kBlockSize, kBlockSize);
  const auto opened = BrickList::open(store_, clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number(), EUCLEAN);
}

TEST_F(Allocation, ComparingWithTheBrickFindsLeaksAndLosses) {
  const uint64_t base = space_->take_blocks(4).value();
  record(base, 4 * kBlockSize);
  restart();
  const uint64_t beyond = base + 100 * kBlockSize;
  const auto difference =
      space_->compare({{beyond, 2}, {base + kBlockSize, 1}, {base, 1}, {base + 3 * kBlockSize, 2}});
  EXPECT_EQ(difference.leaked, (std::vector<brick::Run>{{base + 4 * kBlockSize, 1}, {beyond, 2}}));
  EXPECT_EQ(difference.missing, (std::vector<brick::Run>{{base + 2 * kBlockSize, 1}}));
}

// Random takers and givers: no grain has two owners, and everything given back is found again.
TEST_F(Allocation, NoGrainEverHasTwoOwners) {
  SeededRandom random(23);
  std::map<uint64_t, uint64_t> owned;  // logical -> length
  const auto overlaps = [&](const Piece& piece) {
    const auto next = owned.lower_bound(piece.logical);
    if (next != owned.end() && next->first < piece.logical + piece.length) return true;
    return next != owned.begin() && std::prev(next)->first + std::prev(next)->second > piece.logical;
  };
  for (int step = 0; step < 4000; ++step) {
    clock_.advance(Milliseconds(10));
    if (owned.size() < 40 || random.next_u64() % 2 == 0) {
      const uint64_t bytes = 1 + random.next_u64() % (kBlockSize / 8);
      auto pieces = space_->take_grains(bytes);
      if (pieces.empty()) {
        pieces = {space_->share_block(space_->take_blocks(1).value(), bytes)};
      }
      uint64_t total = 0;
      for (const Piece& piece : pieces) {
        ASSERT_FALSE(overlaps(piece));
        owned.emplace(piece.logical, piece.length);
        total += piece.length;
      }
      ASSERT_EQ(total, (bytes + kGrainSize - 1) / kGrainSize * kGrainSize);
    } else {
      const auto victim = std::next(owned.begin(), static_cast<long>(random.next_u64() % owned.size()));
      space_->free(victim->first, victim->second);
      owned.erase(victim);
    }
    uint64_t used = 0;
    for (const auto& [logical, length] : owned) used += length;
    ASSERT_EQ(space_->used_blocks() * kBlockSize - space_->free_grain_bytes(), used);
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
