// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shared/initiator/passage.h"

namespace pnfsrdma::initiator {

// Byte ranges, coalesced; never more than kRangesMax of them: then the two nearest become one, so the set may
// come to cover more than was added, never less. Allocates once. Not thread-safe.
class RangeSet {
 public:
  static constexpr size_t kRangesMax = 64;

  RangeSet() { ranges_.reserve(kRangesMax + 1); }
  void add(uint64_t offset, uint64_t length);
  // Forgets everything from `offset` on.
  void cut(uint64_t offset);
  void clear() { ranges_.clear(); }
  bool empty() const { return ranges_.empty(); }
  std::span<const FileRange> ranges() const { return ranges_; }

 private:
  void join_nearest();

  std::vector<FileRange> ranges_;  // sorted, neither touching nor overlapping
};

}  // namespace pnfsrdma::initiator
