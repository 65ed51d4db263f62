// SPDX-License-Identifier: Apache-2.0
#include "shared/base/latency_histogram.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pnfsrdma {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

TEST(LatencyHistogram, BordersGoFromAMicrosecondToTenSeconds) {
  constexpr auto kBorders = LatencyHistogram::borders();
  EXPECT_EQ(kBorders.front(), microseconds(1));
  EXPECT_EQ(kBorders[1], microseconds(2));
  EXPECT_EQ(kBorders[2], microseconds(5));
  EXPECT_EQ(kBorders[3], microseconds(10));
  EXPECT_EQ(kBorders.back(), seconds(10));
}

TEST(LatencyHistogram, ABorderBelongsToTheBucketBelow) {
  EXPECT_EQ(LatencyHistogram::bucket_of(microseconds(0)), 0u);
  EXPECT_EQ(LatencyHistogram::bucket_of(microseconds(1)), 0u);
  EXPECT_EQ(LatencyHistogram::bucket_of(microseconds(1) + std::chrono::nanoseconds(1)), 1u);
  EXPECT_EQ(LatencyHistogram::bucket_of(microseconds(10)), 3u);
  EXPECT_EQ(LatencyHistogram::bucket_of(seconds(10)), LatencyHistogram::kBorders - 1);
  EXPECT_EQ(LatencyHistogram::bucket_of(seconds(11)), LatencyHistogram::kBorders);
}

TEST(LatencyHistogram, ManyThreadsLoseNothing) {
  LatencyHistogram histogram;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&histogram] {
      for (int j = 0; j < 10'000; ++j) histogram.add(microseconds(j % 100));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto seen = histogram.snapshot();
  EXPECT_EQ(seen.count(), 40'000u);
  EXPECT_EQ(seen.sum, 400 * microseconds(99 * 100 / 2));
}

TEST(LatencyHistogram, TimeThatRanBackwardsCountsAsNone) {
  LatencyHistogram histogram;
  histogram.add(microseconds(-5));
  EXPECT_EQ(histogram.snapshot().counts[0], 1u);
  EXPECT_EQ(histogram.snapshot().sum.count(), 0);
}

}  // namespace
}  // namespace pnfsrdma
