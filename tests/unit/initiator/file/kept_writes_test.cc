// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/kept_writes.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "shared/base/random.h"
#include "shared/initiator/data_path_options.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::initiator {
namespace {

constexpr uint64_t kChunk = KeptMemory::kChunkBytes;

Bytes bytes_of(size_t length, uint8_t value) {
  return Bytes(length, std::byte{value});
}

// Everything that is kept, in a file of `size` bytes; zeros where nothing is.
Bytes contents(KeptWrites& kept, size_t size) {
  Bytes all(size);
  Bytes sink(100'000);
  while (const auto range = kept.first({0, size}, sink)) {
    std::copy_n(sink.begin(), range->length, all.begin() + static_cast<ptrdiff_t>(range->offset));
    kept.forget(range->offset, range->length);
  }
  return all;
}

TEST(KeptWrites, HoldsExactlyWhatWasKeptLast) {
  KeptMemory memory(16 * kChunk);
  KeptWrites kept(memory);
  Bytes expected(3 * kChunk);
  SeededRandom random(7);
  for (int i = 0; i < 300; ++i) {
    const size_t offset = random.next_u64() % (3 * kChunk - 1);
    const size_t length = 1 + random.next_u64() % std::min<size_t>(3 * kChunk - offset, 50'000);
    const auto value = static_cast<uint8_t>(1 + i % 255);
    if (random.next_u64() % 4 == 0) {
      kept.forget(offset, length);
      std::fill_n(expected.begin() + static_cast<ptrdiff_t>(offset), length, std::byte{0});
    } else {
      kept.keep(offset, bytes_of(length, value));
      std::fill_n(expected.begin() + static_cast<ptrdiff_t>(offset), length, std::byte{value});
    }
  }
  EXPECT_EQ(contents(kept, expected.size()), expected);
  EXPECT_FALSE(kept.any());
  EXPECT_EQ(memory.used(), 0u);
}

TEST(KeptWrites, WhatIsCommittedIsForgottenAndItsMemoryGivenBack) {
  KeptMemory memory(16 * kChunk);
  KeptWrites kept(memory);
  kept.keep(0, bytes_of(2 * kChunk + 10, 1));
  EXPECT_EQ(memory.used(), 3 * kChunk);
  kept.forget(0, kChunk + 1);
  EXPECT_EQ(memory.used(), 2 * kChunk);
  EXPECT_FALSE(kept.covers(kChunk, 2));
  EXPECT_TRUE(kept.covers(kChunk + 1, kChunk + 9));
  kept.forget(0, 2 * kChunk + 10);
  EXPECT_FALSE(kept.any());
  EXPECT_EQ(memory.used(), 0u);
}

TEST(KeptWrites, RoomIsRefusedAtTheLimitAndThereAgainAfterwards) {
  KeptMemory memory(2 * kChunk);
  KeptWrites one(memory);
  KeptWrites other(memory);
  EXPECT_TRUE(one.set_aside(5, 2 * kChunk - 5));
  one.keep(5, bytes_of(2 * kChunk - 5, 1));
  EXPECT_FALSE(other.set_aside(0, 1));
  EXPECT_FALSE(memory.wait_for_room(steady_now()));
  std::thread committer([&] { one.forget(0, kChunk); });
  EXPECT_TRUE(memory.wait_for_room(steady_now() + std::chrono::seconds(60)));
  committer.join();
  EXPECT_TRUE(other.set_aside(0, 1));
}

TEST(KeptWrites, AWriteThatIsTooLargeLeavesNothingSetAside) {
  KeptMemory memory(2 * kChunk);
  KeptWrites kept(memory);
  EXPECT_FALSE(kept.set_aside(0, 3 * kChunk));
  EXPECT_EQ(memory.used(), 0u);
}

TEST(KeptWrites, RoomThatAWriteDidNotNeedIsGivenBackAtItsEnd) {
  KeptMemory memory(4 * kChunk);
  KeptWrites kept(memory);
  {
    const auto room = kept.set_aside(0, 3 * kChunk);
    ASSERT_TRUE(room);
    EXPECT_EQ(memory.used(), 3 * kChunk);
    kept.keep(kChunk, bytes_of(1, 1));
  }
  EXPECT_EQ(memory.used(), kChunk);
  EXPECT_TRUE(kept.covers(kChunk, 1));
  EXPECT_EQ(kept.set_aside(0, 0).has_value(), true);
}

TEST(KeptWrites, RoomIsNotTakenFromAWriteUnderWay) {
  KeptMemory memory(2 * kChunk);
  KeptWrites kept(memory);
  KeptWrites other(memory);
  auto room = kept.set_aside(0, 2 * kChunk);
  auto shared = kept.set_aside(kChunk, 1);
  ASSERT_TRUE(room && shared);
  kept.keep(0, bytes_of(10, 1));
  kept.forget(0, 10);
  EXPECT_FALSE(other.set_aside(0, 1));
  room.reset();
  EXPECT_EQ(memory.used(), kChunk);
  shared.reset();
  EXPECT_EQ(memory.used(), 0u);
}

TEST(KeptWrites, AThousandFilesThatGrewByALittleHaveRoom) {
  KeptMemory memory(DataPathOptions{}.kept_bytes_max);
  std::deque<KeptWrites> files;
  for (int i = 0; i < 1000; ++i) {
    const auto room = files.emplace_back(memory).set_aside(100, 100);
    ASSERT_TRUE(room) << i;
    files.back().keep(100, bytes_of(100, 1));
  }
}

TEST(KeptWrites, WritesTooScatteredAreRefusedUntilTheyAreCommitted) {
  KeptMemory memory(64 * kChunk);
  KeptWrites kept(memory);
  uint64_t offset = 0;
  for (; kept.set_aside(offset, 1) && offset < (1 << 20); offset += 2) kept.keep(offset, bytes_of(1, 1));
  EXPECT_LT(offset, 1u << 20);
  kept.forget(0, offset);
  EXPECT_TRUE(kept.set_aside(offset, 1));
}

TEST(RangeSet, RemovalCutsRangesExactly) {
  RangeSet set;
  set.add(0, 100);
  set.remove(40, 20);
  EXPECT_TRUE(set.covers(0, 40));
  EXPECT_FALSE(set.covers(39, 2));
  EXPECT_TRUE(set.covers(60, 40));
  EXPECT_FALSE(set.overlaps(40, 20));
  EXPECT_TRUE(set.overlaps(39, 2));
  EXPECT_TRUE(set.overlaps(59, 2));
  set.remove(0, 10);
  set.remove(90, UINT64_MAX - 90);
  EXPECT_EQ(set.ranges().size(), 2u);
  EXPECT_EQ(set.ranges().front(), (FileRange{10, 30}));
  EXPECT_EQ(set.ranges().back(), (FileRange{60, 30}));
  set.remove(0, UINT64_MAX);
  EXPECT_TRUE(set.empty());
}

}  // namespace
}  // namespace pnfsrdma::initiator
