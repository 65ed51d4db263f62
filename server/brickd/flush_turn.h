// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "server/brickd/limits.h"
#include "shared/base/bytes.h"

namespace pnfsrdma::brick {

// What is made durable in one turn at the flush gate, for however many callers: the union of their ranges, of
// which those that touch or nearly touch are one flush. What a flush costs is a place on the disk more than its
// length; the pages between two ranges are written if they are dirty, which hurts nobody.
class FlushTurn {
 public:
  // Takes the front of `range`, as much as there is room for, and cuts it off.
  void take(ByteSpan& range);
  // Nothing more fits: kFlushTurnBytes or kFlushTurnRanges are reached.
  bool full() const { return bytes_ >= kFlushTurnBytes || flushes_.size() >= kFlushTurnRanges; }
  bool empty() const { return flushes_.empty(); }

  // In order of their addresses.
  std::vector<ByteSpan> flushes() const;

 private:
  std::map<const std::byte*, const std::byte*> flushes_;  // begin, end; none within kFlushGapBytes of another
  uint64_t bytes_ = 0;
};

}  // namespace pnfsrdma::brick
