// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/unstable_writes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::initiator {
namespace {

TEST(UnstableMemory, IsBoundedAndGivenBackWithTheLastPieceOfACopy) {
  UnstableMemory memory(10'000);
  UnstableWrites writes;
  writes.put({0, 8192}, memory.copy(Bytes(8192)));
  EXPECT_GE(memory.used(), 8192u);
  EXPECT_EQ(memory.copy(Bytes(4096)), nullptr);
  EXPECT_LE(memory.used(), memory.limit());
  writes.forget({0, 4096});
  EXPECT_EQ(memory.copy(Bytes(4096)), nullptr) << "the rest of it is needed";
  writes.forget({4096, 4096});
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_TRUE(writes.empty());
}

TEST(UnstableWrites, AShortWriteKeepsWhatWasWritten) {
  UnstableMemory memory(1 << 20);
  UnstableWrites writes;
  writes.put({100, 10}, memory.copy(Bytes(4096, std::byte{1})));
  Bytes sink(4096);
  EXPECT_EQ(writes.first({0, 4096}, sink), (FileRange{100, 10}));
}

// Against one byte after the other.
TEST(UnstableWrites, AreWhatANaiveArrayIs) {
  constexpr size_t kBytes = 256;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SeededRandom random(seed);
    UnstableMemory memory(1 << 20);
    UnstableWrites writes;
    std::vector<int> naive(kBytes, -1);
    const auto below = [&](uint64_t bound) { return random.next_u64() % bound; };
    for (int step = 0; step < 5'000; ++step) {
      const uint64_t offset = below(kBytes), length = 1 + below(std::min<uint64_t>(kBytes - offset, 40));
      if (below(3) == 0) {
        writes.forget({offset, length});
        std::fill_n(naive.begin() + static_cast<ptrdiff_t>(offset), length, -1);
      } else {
        const auto value = static_cast<uint8_t>(below(256));
        writes.put({offset, length}, memory.copy(Bytes(length, std::byte{value})));
        std::fill_n(naive.begin() + static_cast<ptrdiff_t>(offset), length, value);
      }
      Bytes sink(1 + below(64));
      const FileRange within{below(kBytes), 1 + below(kBytes)};
      const auto first = writes.first(within, sink);
      const size_t end = std::min<size_t>(within.end(), kBytes);
      size_t expected = within.offset;
      while (expected < end && naive[expected] < 0) ++expected;
      ASSERT_EQ(first.has_value(), expected < end);
      if (!first) continue;
      ASSERT_EQ(first->offset, expected);
      for (uint64_t i = 0; i < first->length; ++i)
        ASSERT_EQ(std::to_integer<int>(sink[i]), naive[first->offset + i]);
      const bool full = first->length == sink.size() || first->end() == end;
      ASSERT_TRUE(full || naive[first->end()] < 0) << "it could have been longer";
    }
    writes.forget({0, kBytes});
    EXPECT_EQ(memory.used(), 0u);
  }
}

}  // namespace
}  // namespace pnfsrdma::initiator
