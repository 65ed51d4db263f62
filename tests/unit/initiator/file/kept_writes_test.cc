// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/kept_writes.h"

#include <gtest/gtest.h>

#include <thread>

#include "shared/base/random.h"

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
  while (const auto range = kept.first(sink)) {
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
  kept.forget_below(kChunk + 1);
  EXPECT_EQ(memory.used(), 2 * kChunk);
  EXPECT_FALSE(kept.covers(kChunk, 2));
  EXPECT_TRUE(kept.covers(kChunk + 1, kChunk + 9));
  kept.forget_below(2 * kChunk + 10);
  EXPECT_FALSE(kept.any());
  EXPECT_EQ(memory.used(), 0u);
}

TEST(KeptWrites, RoomIsRefusedAtTheLimitAndThereAgainAfterwards) {
  KeptMemory memory(2 * kChunk);
  KeptWrites one(memory);
  KeptWrites other(memory);
  EXPECT_TRUE(one.prepare(5, 2 * kChunk - 5));
  one.keep(5, bytes_of(2 * kChunk - 5, 1));
  EXPECT_FALSE(other.prepare(0, 1));
  EXPECT_FALSE(memory.wait_for_room(std::chrono::steady_clock::now()));
  std::thread committer([&] { one.forget_below(kChunk); });
  EXPECT_TRUE(memory.wait_for_room(std::chrono::steady_clock::now() + std::chrono::seconds(60)));
  committer.join();
  EXPECT_TRUE(other.prepare(0, 1));
}

TEST(KeptWrites, AWriteThatIsTooLargeLeavesNothingSetAside) {
  KeptMemory memory(2 * kChunk);
  KeptWrites kept(memory);
  EXPECT_FALSE(kept.prepare(0, 3 * kChunk));
  EXPECT_EQ(memory.used(), 0u);
}

TEST(KeptWrites, WritesTooScatteredAreRefusedUntilTheyAreCommitted) {
  KeptMemory memory(64 * kChunk);
  KeptWrites kept(memory);
  uint64_t offset = 0;
  for (; kept.prepare(offset, 1) && offset < (1 << 20); offset += 2) kept.keep(offset, bytes_of(1, 1));
  EXPECT_LT(offset, 1u << 20);
  kept.forget_below(offset);
  EXPECT_TRUE(kept.prepare(offset, 1));
}

TEST(RangeSet, RemovalCutsRangesExactly) {
  RangeSet set;
  set.add(0, 100);
  set.remove(40, 20);
  EXPECT_TRUE(set.covers(0, 40));
  EXPECT_FALSE(set.covers(39, 2));
  EXPECT_TRUE(set.covers(60, 40));
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
