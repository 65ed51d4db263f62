// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/flush_turn.h"

#include <algorithm>
#include <iterator>

namespace pnfsrdma::brick {

void FlushTurn::take(ByteSpan& range) {
  const size_t room = bytes_ < kFlushTurnBytes ? kFlushTurnBytes - bytes_ : 0;
  const ByteSpan piece = range.first(std::min(range.size(), room));
  range = range.subspan(piece.size());
  if (piece.empty()) return;
  const std::byte* begin = piece.data();
  const std::byte* end = begin + piece.size();
  // The first one that does not end well before it, and those that do not begin well behind it.
  auto near = flushes_.upper_bound(begin);
  if (near != flushes_.begin() && begin <= std::prev(near)->second + kFlushGapBytes) --near;
  while (near != flushes_.end() && near->first <= end + kFlushGapBytes) {
    begin = std::min(begin, near->first);
    end = std::max(end, near->second);
    bytes_ -= static_cast<uint64_t>(near->second - near->first);
    near = flushes_.erase(near);
  }
  flushes_.emplace(begin, end);
  bytes_ += static_cast<uint64_t>(end - begin);
}

std::vector<ByteSpan> FlushTurn::flushes() const {
  std::vector<ByteSpan> flushes;
  for (const auto& [begin, end] : flushes_) flushes.emplace_back(begin, end);
  return flushes;
}

}  // namespace pnfsrdma::brick
