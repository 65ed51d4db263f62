// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shared/initiator/file/layout_pin.h"

namespace pnfsrdma::initiator {

// Byte ranges, coalesced; never more than a number of them: then the two nearest become one, so the set may
// come to cover more than was added, never less. With the usual number it allocates once. Not thread-safe.
class RangeSet {
 public:
  static constexpr size_t kRangesMax = 64;
  // For the constructor: as many as it takes to say exactly what was added.
  static constexpr size_t kExact = SIZE_MAX;

  RangeSet() : RangeSet(kRangesMax) {}
  explicit RangeSet(size_t ranges_max) : ranges_max_(ranges_max) {
    if (ranges_max_ <= kRangesMax) ranges_.reserve(ranges_max_ + 1);
  }
  void add(uint64_t offset, uint64_t length);
  void remove(uint64_t offset, uint64_t length);
  // Every byte of the range is in the set.
  bool covers(uint64_t offset, uint64_t length) const;
  bool overlaps(uint64_t offset, uint64_t length) const;
  // Forgets everything from `offset` on.
  void cut(uint64_t offset);
  void clear() { ranges_.clear(); }
  bool empty() const { return ranges_.empty(); }
  std::span<const FileRange> ranges() const { return ranges_; }

 private:
  // The first range that ends behind `offset`.
  std::vector<FileRange>::const_iterator first_behind(uint64_t offset) const;
  void join_nearest();

  size_t ranges_max_;
  std::vector<FileRange> ranges_;  // sorted, neither touching nor overlapping
};

}  // namespace pnfsrdma::initiator
