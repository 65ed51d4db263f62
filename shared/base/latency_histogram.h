// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace pnfsrdma {

// How long something took, counted in fixed buckets whose borders go 1, 2, 5 per decade from a microsecond to
// ten seconds, so that the histograms of all programs can be added. Adding is two relaxed atomic additions:
// any thread, on the data path too. Reading copies; what is added meanwhile may be in one number and not yet
// in another.
class LatencyHistogram {
 public:
  using Duration = std::chrono::nanoseconds;

  static constexpr size_t kBorders = 22;
  // A bucket holds what took at most its border and longer than the one before.
  static constexpr std::array<Duration, kBorders> borders() {
    std::array<Duration, kBorders> all{};
    int64_t decade = 1000;
    for (size_t i = 0; i < kBorders; ++i) {
      constexpr std::array<int64_t, 3> kSteps = {1, 2, 5};
      all[i] = Duration(decade * kSteps[i % 3]);
      if (i % 3 == 2) decade *= 10;
    }
    return all;
  }

  struct Snapshot {
    // By bucket, not cumulative; the last is everything above the last border.
    std::array<uint64_t, kBorders + 1> counts{};
    Duration sum{0};
    uint64_t count() const {
      uint64_t total = 0;
      for (const uint64_t of_bucket : counts) total += of_bucket;
      return total;
    }
  };

  void add(Duration took) {
    counts_[bucket_of(took)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(took.count() > 0 ? static_cast<uint64_t>(took.count()) : 0, std::memory_order_relaxed);
  }

  Snapshot snapshot() const {
    Snapshot copy;
    for (size_t i = 0; i < counts_.size(); ++i) copy.counts[i] = counts_[i].load(std::memory_order_relaxed);
    copy.sum = Duration(sum_.load(std::memory_order_relaxed));
    return copy;
  }

  static constexpr size_t bucket_of(Duration took) {
    constexpr auto kAll = borders();
    size_t low = 0;
    size_t high = kBorders;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (took <= kAll[middle]) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

 private:
  std::array<std::atomic<uint64_t>, kBorders + 1> counts_{};
  std::atomic<uint64_t> sum_ = 0;
};

}  // namespace pnfsrdma
