// SPDX-License-Identifier: Apache-2.0
#include "server/mds/grants/range_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

TEST(RangeCounts, AByteIsCoveredUntilTheLastRangeHasGone) {
  RangeCounts counts;
  counts.add({10, 30});
  counts.add({20, 40});
  EXPECT_EQ(counts.end(), 40u);
  EXPECT_TRUE(counts.covers({10, 40}));
  EXPECT_FALSE(counts.covers({9, 11}));
  EXPECT_FALSE(counts.covers({39, 41}));
  counts.remove({20, 40});
  EXPECT_EQ(counts.end(), 30u);
  EXPECT_TRUE(counts.covers({10, 30}));
  counts.remove({10, 30});
  EXPECT_TRUE(counts.empty());
  EXPECT_EQ(counts.end(), 0u);
}

TEST(RangeCounts, AgreesWithAnArray) {
  constexpr uint64_t kBytes = 64;
  SeededRandom random(3);
  RangeCounts counts;
  std::array<size_t, kBytes> model{};
  std::vector<ByteRange> added;
  const auto below = [&](uint64_t end) { return random.next_u64() % end; };
  const auto some_range = [&] {
    const uint64_t begin = below(kBytes);
    return ByteRange{begin, std::min(kBytes, begin + below(9))};
  };
  for (int step = 0; step < 4000; ++step) {
    if (added.size() < 12 && below(2) == 0) {
      added.push_back(some_range());
      counts.add(added.back());
      for (uint64_t at = added.back().begin; at < added.back().end; ++at) ++model[at];
    } else if (!added.empty()) {
      const size_t which = below(added.size());
      const ByteRange gone = added[which];
      added.erase(added.begin() + static_cast<ptrdiff_t>(which));
      counts.remove(gone);
      for (uint64_t at = gone.begin; at < gone.end; ++at) --model[at];
    }
    const ByteRange asked = some_range();
    bool covered = true;
    RangeSet bytes;
    bytes.add(asked);
    counts.take_from(bytes);
    for (uint64_t at = asked.begin; at < asked.end; ++at) {
      covered = covered && model[at] > 0;
      ASSERT_EQ(bytes.contains({at, at + 1}), model[at] == 0) << step;
    }
    ASSERT_EQ(counts.covers(asked), covered) << step;
    uint64_t end = kBytes;
    while (end > 0 && model[end - 1] == 0) --end;
    ASSERT_EQ(counts.end(), end) << step;
    ASSERT_EQ(counts.empty(), end == 0) << step;
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
