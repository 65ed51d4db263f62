// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/block_table.h"

#include <gtest/gtest.h>

#include <cstring>

#include "shared/pmem/page_persistence.h"

namespace pnfsrdma::brick {
namespace {

constexpr uint64_t kSize = 4096;  // of a block: small ones do here

class Table : public testing::Test {
 protected:
  using Run = brick::Run;  // not gtest's
  void SetUp() override {
    ASSERT_TRUE(BlockTable::write_new(memory, persistence, geometry, format::State::kFreeClean));
    reopen();
  }
  void reopen() { table.emplace(memory, persistence, geometry, now); }
  std::vector<Run> alloc(uint64_t logical, uint64_t count) {
    const auto runs = table->alloc({1, logical * kSize, count});
    EXPECT_TRUE(runs);
    return runs ? *runs : std::vector<Run>{};
  }
  Status alloc_status(uint64_t logical, uint64_t count) {
    const auto runs = table->alloc({1, logical, count});
    return runs ? Status::kOk : runs.error();
  }

  BlockTable::Geometry geometry{.block_size = kSize, .block_count = 8};
  Bytes memory = Bytes(8 * sizeof(format::Entry));
  pmem::UnflushedPersistence persistence{Durability::kVolatile};
  SteadyTime now{std::chrono::hours(1)};
  std::optional<BlockTable> table;
};

TEST_F(Table, AllocatedBlocksAreListedAndSurviveReopening) {
  EXPECT_EQ(alloc(10, 3), (std::vector<Run>{{10 * kSize, 3}}));
  reopen();
  const ListResult list = table->list(0, 100);
  ASSERT_EQ(list.runs.size(), 1u);
  EXPECT_EQ(list.runs[0].run, (Run{10 * kSize, 3}));
  EXPECT_TRUE(list.end);
  EXPECT_EQ(table->counts().allocated, 3u);
}

TEST_F(Table, AllocRefusesWhatItCannotGive) {
  alloc(10, 3);
  EXPECT_EQ(alloc_status(12 * kSize, 2), Status::kExists);
  EXPECT_EQ(alloc_status(9 * kSize, 2), Status::kExists);
  EXPECT_EQ(alloc_status(20 * kSize, 6), Status::kNoSpace);
  EXPECT_EQ(alloc_status(20 * kSize + 1, 1), Status::kInvalid);
  EXPECT_EQ(alloc_status(20 * kSize, 0), Status::kInvalid);
  EXPECT_EQ(alloc_status(0 - 2 * kSize, 3), Status::kInvalid);
  EXPECT_EQ(alloc_status(20 * kSize, UINT64_MAX), Status::kNoSpace);
  EXPECT_EQ(table->counts().allocated, 3u);
}

TEST_F(Table, AnErasedBlockIsDirtyAndGivenOnlyWhenItWasZeroed) {
  ASSERT_EQ(table->erase(2, 3, now), Status::kOk);
  EXPECT_EQ(table->counts().dirty, 3u);
  EXPECT_EQ(table->counts().clean, 5u);
  EXPECT_EQ(alloc_status(0, 6), Status::kTryLater);
  reopen();
  EXPECT_EQ(table->counts().dirty, 3u);
  for (int i = 0; i < 3; ++i) table->mark_clean(*table->next_to_zero(now + Milliseconds(kQuarantineMs)));
  EXPECT_EQ(alloc(0, 8), (std::vector<Run>{{0, 8}}));
}

TEST_F(Table, BlocksInUseAreNotErased) {
  alloc(10, 3);
  EXPECT_EQ(table->erase(0, 8, now), Status::kBusy);
  EXPECT_EQ(table->erase(2, 1, now), Status::kBusy);
  EXPECT_EQ(table->counts().dirty, 0u);
  EXPECT_EQ(table->erase(3, 5, now), Status::kOk);
  EXPECT_EQ(table->erase(3, 0, now), Status::kInvalid);
  EXPECT_EQ(table->erase(3, 6, now), Status::kInvalid);
  EXPECT_EQ(table->erase(8, 1, now), Status::kInvalid);
  EXPECT_EQ(table->counts().allocated, 3u);
}

TEST_F(Table, ErasingBringsDamagedBlocksBackIntoService) {
  std::fill_n(memory.begin() + 3 * sizeof(format::Entry), sizeof(format::Entry), std::byte{0xAB});
  reopen();
  ASSERT_EQ(table->counts().damaged, 1u);
  ASSERT_EQ(table->erase(0, 8, now), Status::kOk);
  EXPECT_EQ(table->counts().damaged, 0u);
  EXPECT_EQ(table->counts().dirty, 8u);
  reopen();
  EXPECT_EQ(table->counts().dirty, 8u);
}

TEST_F(Table, ASurveyCoversEveryBlockOnce) {
  alloc(10, 3);
  ASSERT_EQ(table->free({{11 * kSize, 1}}, now), Status::kOk);
  ASSERT_EQ(table->unmap({{12 * kSize, 1}}), Status::kOk);
  const SurveyResult whole = table->survey(0, 100);
  EXPECT_TRUE(whole.end);
  EXPECT_EQ(whole.runs, (std::vector<SurveyedRun>{{0, 1, BlockUse::kAllocated, 10 * kSize},
                                                  {1, 1, BlockUse::kDirty, 0},
                                                  {2, 1, BlockUse::kParked, 12 * kSize},
                                                  {3, 5, BlockUse::kClean, 0}}));
  const SurveyResult part = table->survey(1, 2);
  EXPECT_FALSE(part.end);
  ASSERT_EQ(part.runs.size(), 2u);
  EXPECT_EQ(part.runs[1].first, 2u);
  EXPECT_TRUE(table->survey(8, 2).end);
}

TEST_F(Table, FreedBlocksRestBeforeTheyAreZeroedAndCleanBeforeTheyAreGiven) {
  alloc(0, 8);
  ASSERT_EQ(table->free({{0, 2}}, now), Status::kOk);
  EXPECT_EQ(alloc_status(100 * kSize, 1), Status::kTryLater);
  EXPECT_EQ(alloc_status(100 * kSize, 3), Status::kNoSpace);
  EXPECT_FALSE(table->next_to_zero(now + Milliseconds(kQuarantineMs - 1)));
  const auto block = table->next_to_zero(now + Milliseconds(kQuarantineMs));
  ASSERT_TRUE(block);
  EXPECT_EQ(alloc_status(100 * kSize, 1), Status::kTryLater);
  table->mark_clean(*block);
  EXPECT_EQ(alloc_status(100 * kSize, 1), Status::kOk);
}

TEST_F(Table, FreeIsAllOrNothing) {
  alloc(0, 4);
  EXPECT_EQ(table->free({{0, 2}, {3 * kSize, 2}}, now), Status::kNotFound);
  EXPECT_EQ(table->free({{0, 2}, {kSize, 1}}, now), Status::kInvalid);
  EXPECT_EQ(table->free({}, now), Status::kInvalid);
  EXPECT_EQ(table->counts().allocated, 4u);
}

TEST_F(Table, PinnedBlocksCanBeNeitherFreedNorUnmapped) {
  alloc(0, 4);
  const auto pieces = table->resolve(kSize + 10, 2 * kSize);
  ASSERT_TRUE(pieces);
  for (const Piece& piece : *pieces) table->pin(piece);
  EXPECT_EQ(table->free({{3 * kSize, 1}}, now), Status::kBusy);
  EXPECT_EQ(table->unmap({{kSize, 1}}), Status::kBusy);
  EXPECT_EQ(table->free({{0, 1}}, now), Status::kOk);
  for (const Piece& piece : *pieces) table->unpin(piece);
  EXPECT_EQ(table->free({{3 * kSize, 1}}, now), Status::kOk);
}

TEST_F(Table, ParkedBlocksKeepTheirPlaceAndCanMove) {
  alloc(0, 2);
  ASSERT_EQ(table->unmap({{0, 2}}), Status::kOk);
  EXPECT_EQ(table->unmap({{0, 2}}), Status::kNotFound);
  EXPECT_FALSE(table->resolve(0, 1));
  EXPECT_TRUE(table->list(0, 10).runs[0].parked);
  alloc(5, 1);
  EXPECT_EQ(table->map({1, 0, 4 * kSize, 2}), Status::kExists);
  EXPECT_EQ(table->map({1, 0, kSize, 2}), Status::kExists);  // onto part of itself
  reopen();
  EXPECT_EQ(table->map({1, 0, 7 * kSize, 2}), Status::kOk);
  EXPECT_TRUE(table->resolve(7 * kSize, 2 * kSize));
  EXPECT_EQ(table->map({1, 7 * kSize, 0, 2}), Status::kNotFound);  // not parked any more
}

TEST_F(Table, RangesResolveToContiguousPieces) {
  alloc(0, 1);
  alloc(10, 1);
  alloc(1, 2);
  const auto pieces = table->resolve(100, 3 * kSize - 200);
  ASSERT_TRUE(pieces);
  ASSERT_EQ(pieces->size(), 2u);
  EXPECT_EQ((*pieces)[0].length, kSize - 100);
  EXPECT_EQ((*pieces)[1].logical, kSize);
  EXPECT_EQ((*pieces)[1].physical, 2 * kSize);
  EXPECT_EQ(table->resolve(2 * kSize, kSize + 1).error(), Status::kNotFound);
  EXPECT_EQ(table->resolve(0, 0).error(), Status::kInvalid);
  EXPECT_EQ(table->resolve(UINT64_MAX, 2).error(), Status::kInvalid);
}

TEST_F(Table, ListGoesOnWhereItStopped) {
  alloc(0, 1);
  alloc(10, 1);
  alloc(20, 1);
  const ListResult first = table->list(0, 2);
  EXPECT_EQ(first.runs.size(), 2u);
  EXPECT_FALSE(first.end);
  const ListResult rest = table->list(11 * kSize, 2);
  EXPECT_EQ(rest.runs.size(), 1u);
  EXPECT_TRUE(rest.end);
}

TEST_F(Table, TornUpdateFallsBackToTheOtherHalf) {
  alloc(10, 1);
  memory[32 + 8] ^= std::byte{1};  // block 0, the half that alloc wrote
  reopen();
  EXPECT_EQ(table->counts().clean, 8u);
  EXPECT_TRUE(table->list(0, 10).runs.empty());
}

TEST_F(Table, UnreadableAndContestedBlocksAreOutOfService) {
  alloc(10, 2);
  std::memset(memory.data() + 7 * sizeof(format::Entry), 0xEE, sizeof(format::Entry));
  // Block 1 claims block 0's address, with a right checksum.
  format::Record record{10 * kSize, 1, 9, static_cast<uint32_t>(format::State::kAllocated), 0};
  record.checksum = format::record_checksum(record, 1, geometry.uuid);
  std::memcpy(memory.data() + sizeof(format::Entry), &record, sizeof record);
  reopen();
  EXPECT_EQ(table->counts().damaged, 3u);
  EXPECT_EQ(table->counts().clean, 5u);
  EXPECT_TRUE(table->list(0, 10).runs.empty());
}

TEST_F(Table, RecordOfAnotherPlaceOrPoolIsNotBelieved) {
  std::memcpy(memory.data() + sizeof(format::Entry), memory.data(), sizeof(format::Entry));
  reopen();
  EXPECT_EQ(table->counts().damaged, 1u);
  geometry.uuid[0] = std::byte{1};
  reopen();
  EXPECT_EQ(table->counts().damaged, 8u);
}

}  // namespace
}  // namespace pnfsrdma::brick
