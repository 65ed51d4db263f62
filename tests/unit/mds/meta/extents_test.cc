// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/extents.h"

#include <gtest/gtest.h>

#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

constexpr uint64_t kGrain = kGrainSize;
constexpr InodeId kFile = 7;

class ExtentMap : public OverBothEngines {
 protected:
  void commit(const ExtentChange& change) {
    Batch batch;
    change.write_to(batch);
    ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  }
  // In grains.
  void insert(uint64_t offset, uint64_t logical, uint64_t length, InodeId inode = kFile) {
    ExtentChange change(*store_, inode);
    ASSERT_TRUE(change.insert({offset * kGrain, logical * kGrain, length * kGrain}));
    commit(change);
  }
  std::vector<Extent> all(InodeId inode = kFile) { return Extents(*store_).all(inode).value(); }
  static Extent grains(uint64_t offset, uint64_t logical, uint64_t length) {
    return {offset * kGrain, logical * kGrain, length * kGrain};
  }
};

TEST_P(ExtentMap, AnEmptyFileIsOneHole) {
  EXPECT_EQ(Extents(*store_).map(kFile, 10, 100).value(), (std::vector<Mapping>{{10, 100, std::nullopt}}));
  EXPECT_TRUE(Extents(*store_).map(kFile, 10, 0).value().empty());
}

TEST_P(ExtentMap, MapsNoFurtherThanSoManyExtents) {
  for (uint64_t i = 0; i < 4; ++i) insert(1 + 2 * i, 100 + i * 10, 1);
  const auto pieces = Extents(*store_).map(kFile, 0, 100 * kGrain, 2).value();
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces.back(), (Mapping{3 * kGrain, kGrain, 110 * kGrain}));
  EXPECT_EQ(Extents(*store_).map(kFile, 0, 3 * kGrain + 5, 2).value().back(),
            (Mapping{3 * kGrain, 5, 110 * kGrain}));
  EXPECT_EQ(Extents(*store_).map(kFile, 0, 100 * kGrain, 5).value().size(), 9u);
}

TEST_P(ExtentMap, MapsARangeWithItsHoles) {
  insert(2, 100, 3);
  insert(8, 200, 2);
  const auto pieces = Extents(*store_).map(kFile, 3 * kGrain + 5, 6 * kGrain).value();
  EXPECT_EQ(pieces, (std::vector<Mapping>{{3 * kGrain + 5, 2 * kGrain - 5, 101 * kGrain + 5},
                                          {5 * kGrain, 3 * kGrain, std::nullopt},
                                          {8 * kGrain, kGrain + 5, 200 * kGrain}}));
}

TEST_P(ExtentMap, JoinsWhatGoesOnInFileAndMemory) {
  insert(0, 100, 2);
  insert(4, 104, 2);
  insert(2, 102, 2);
  EXPECT_EQ(all(), (std::vector<Extent>{grains(0, 100, 6)}));
  insert(6, 300, 1);
  EXPECT_EQ(all().size(), 2u);
}

TEST_P(ExtentMap, ManyAtOnceAreJoinedAtTheirEnds) {
  insert(0, 100, 2);
  insert(9, 300, 1);
  ExtentChange change(*store_, kFile);
  ASSERT_TRUE(change.insert_all(
      std::vector{grains(2, 102, 1), grains(4, 200, 1), grains(6, 210, 1), grains(8, 299, 1)}));
  EXPECT_EQ(change.growth(), static_cast<int64_t>(4 * kGrain));
  commit(change);
  EXPECT_EQ(all(), (std::vector<Extent>{grains(0, 100, 3), grains(4, 200, 1), grains(6, 210, 1),
                                        grains(8, 299, 2)}));
}

TEST_P(ExtentMap, ManyAtOnceNeedAHoleAndTheirOrder) {
  insert(5, 100, 1);
  const auto refused = [&](const std::vector<Extent>& extents) {
    ExtentChange change(*store_, kFile);
    return change.insert_all(extents).error().number();
  };
  EXPECT_EQ(refused({grains(2, 300, 1), grains(4, 310, 1), grains(6, 320, 1)}), EEXIST);
  EXPECT_EQ(refused({grains(10, 300, 1), grains(14, 310, 1), grains(12, 320, 1)}), EINVAL);
  EXPECT_EQ(refused({grains(10, 300, 3), grains(12, 310, 1), grains(14, 320, 1)}), EINVAL);
  EXPECT_EQ(refused({grains(10, 300, 1), {12 * kGrain, 1, kGrain}, grains(14, 320, 1)}), EINVAL);
  ExtentChange nothing(*store_, kFile);
  EXPECT_TRUE(nothing.insert_all({}));
  EXPECT_EQ(nothing.growth(), 0);
}

TEST_P(ExtentMap, KeepsFilesApart) {
  insert(0, 100, 2, 7);
  insert(0, 200, 2, 8);
  EXPECT_EQ(all(7), (std::vector<Extent>{grains(0, 100, 2)}));
  EXPECT_EQ(all(8), (std::vector<Extent>{grains(0, 200, 2)}));
}

TEST_P(ExtentMap, RefusesWhatIsTakenOrCrooked) {
  insert(4, 100, 4);
  ExtentChange change(*store_, kFile);
  EXPECT_EQ(change.insert(grains(7, 500, 2)).error().number(), EEXIST);
  EXPECT_EQ(change.insert(grains(2, 500, 3)).error().number(), EEXIST);
  EXPECT_EQ(change.insert({1, 0, kGrain}).error().number(), EINVAL);
  EXPECT_EQ(change.insert({0, 1, kGrain}).error().number(), EINVAL);
  EXPECT_EQ(change.insert({0, 0, 0}).error().number(), EINVAL);
  EXPECT_EQ(change.insert({uint64_t{1} << 63, 0, kGrain}).error().number(), EINVAL);
  EXPECT_EQ(change.insert({0, UINT64_MAX - 4095, kGrain}).error().number(), EINVAL);
  EXPECT_EQ(change.remove(1, kGrain).error().number(), EINVAL);
  EXPECT_EQ(change.growth(), 0);
}

TEST_P(ExtentMap, RemovingSplitsAndReturnsWhatWasThere) {
  insert(0, 100, 10);
  ExtentChange change(*store_, kFile);
  EXPECT_EQ(change.remove(3 * kGrain, 4 * kGrain).value(), (std::vector<Extent>{grains(3, 103, 4)}));
  EXPECT_EQ(change.growth(), -4 * static_cast<int64_t>(kGrain));
  commit(change);
  EXPECT_EQ(all(), (std::vector<Extent>{grains(0, 100, 3), grains(7, 107, 3)}));
}

TEST_P(ExtentMap, AChangeSeesItsOwnEdits) {
  insert(0, 100, 10);
  ExtentChange change(*store_, kFile);
  ASSERT_TRUE(change.remove(2 * kGrain, 6 * kGrain));
  ASSERT_TRUE(change.insert(grains(3, 500, 2)));
  EXPECT_FALSE(change.insert(grains(4, 700, 1)));
  ASSERT_TRUE(change.insert(grains(2, 499, 1)));
  EXPECT_EQ(change.remove(0, UINT64_MAX).value(),
            (std::vector<Extent>{grains(0, 100, 2), grains(2, 499, 3), grains(8, 108, 2)}));
  EXPECT_EQ(change.growth(), -10 * static_cast<int64_t>(kGrain));
  ASSERT_TRUE(change.insert(grains(0, 900, 1)));
  commit(change);
  EXPECT_EQ(all(), (std::vector<Extent>{grains(0, 900, 1)}));
}

TEST_P(ExtentMap, TailRecordsAreFoundAtStart) {
  Batch batch;
  Extents::mark_tail_dirty(batch, 3);
  Extents::mark_tail_dirty(batch, 9);
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  store_.reopen();
  EXPECT_EQ(Extents(*store_).dirty_tails().value(), (std::vector<InodeId>{3, 9}));
  EXPECT_TRUE(Extents(*store_).tail_dirty(3).value());
  Batch clean;
  Extents::mark_tail_clean(clean, 3);
  ASSERT_TRUE(store_->commit(clean, CommitKind::kNamespace));
  EXPECT_FALSE(Extents(*store_).tail_dirty(3).value());
}

// Random edits against an array of one address per grain.
TEST_P(ExtentMap, AgreesWithAnArrayOfGrains) {
  constexpr uint64_t kGrains = 64;
  SeededRandom random(11);
  std::vector<uint64_t> model(kGrains, 0);  // 0: hole
  uint64_t next_logical = 1000;
  for (int step = 0; step < 400; ++step) {
    ExtentChange change(*store_, kFile);
    int64_t growth = 0;
    for (int edit = 0; edit < 3; ++edit) {
      const uint64_t from = random.next_u64() % kGrains;
      const uint64_t count = 1 + random.next_u64() % std::min<uint64_t>(12, kGrains - from);
      uint64_t present = 0;
      for (uint64_t i = from; i < from + count; ++i) present += model[i] != 0;
      if (random.next_u64() % 2 == 0) {
        uint64_t removed = 0;
        const std::vector<Extent> extents = change.remove(from * kGrain, count * kGrain).value();
        for (const Extent& extent : extents) {
          removed += extent.length / kGrain;
          for (uint64_t i = 0; i < extent.length / kGrain; ++i) {
            ASSERT_EQ(model[extent.file_offset / kGrain + i], extent.logical / kGrain + i);
          }
        }
        ASSERT_EQ(removed, present);
        for (uint64_t i = from; i < from + count; ++i) model[i] = 0;
        growth -= static_cast<int64_t>(present);
      } else {
        ASSERT_EQ(change.insert(grains(from, next_logical, count)).has_value(), present == 0);
        if (present > 0) continue;
        for (uint64_t i = 0; i < count; ++i) model[from + i] = next_logical + i;
        next_logical += count + random.next_u64() % 2;
        growth += static_cast<int64_t>(count);
      }
    }
    ASSERT_EQ(change.growth(), growth * static_cast<int64_t>(kGrain));
    commit(change);
    uint64_t at = 0;
    const std::vector<Mapping> pieces = Extents(*store_).map(kFile, 0, kGrains * kGrain).value();
    for (const Mapping& piece : pieces) {
      ASSERT_EQ(piece.file_offset, at);
      for (uint64_t i = 0; i < piece.length / kGrain; ++i) {
        ASSERT_EQ(model[at / kGrain + i], piece.logical ? *piece.logical / kGrain + i : 0);
      }
      at += piece.length;
    }
    ASSERT_EQ(at, kGrains * kGrain);
  }
}

PNFSRDMA_OVER_BOTH_ENGINES(ExtentMap);

}  // namespace
}  // namespace pnfsrdma::mds
