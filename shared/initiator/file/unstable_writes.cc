// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/unstable_writes.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pnfsrdma::initiator {

void UnstableWrites::put(FileRange range, UnstableCopy copy) {
  forget(range);
  if (range.length > 0) pieces_.emplace(range.offset, Piece{std::move(copy), 0, range.end()});
}

void UnstableWrites::forget(FileRange range) {
  if (pieces_.empty() || range.length == 0) return;
  split(range.offset);
  split(range.end());
  pieces_.erase(pieces_.lower_bound(range.offset), pieces_.lower_bound(range.end()));
}

// No piece lies across `offset` behind it.
void UnstableWrites::split(uint64_t offset) {
  const auto behind = pieces_.lower_bound(offset);
  if (behind == pieces_.begin()) return;
  const auto at = std::prev(behind);
  if (at->second.end <= offset) return;
  Piece back = at->second;
  back.skip += offset - at->first;
  at->second.end = offset;
  pieces_.emplace_hint(behind, offset, std::move(back));
}

UnstableWrites::Pieces::const_iterator UnstableWrites::first_behind(uint64_t offset) const {
  const auto behind = pieces_.upper_bound(offset);
  if (behind == pieces_.begin()) return behind;
  const auto at = std::prev(behind);
  return at->second.end > offset ? at : behind;
}

std::optional<FileRange> UnstableWrites::first(FileRange within, MutableByteSpan sink) const {
  auto at = first_behind(within.offset);
  const uint64_t end = range_end(within.offset, within.length);
  if (at == pieces_.end() || at->first >= end || sink.empty()) return std::nullopt;
  FileRange found{std::max(within.offset, at->first), 0};
  for (; at != pieces_.end() && at->first <= found.end() && found.end() < end; ++at) {
    const uint64_t skip = at->second.skip + (found.end() - at->first);
    const uint64_t count =
        std::min<uint64_t>(std::min(at->second.end, end) - found.end(), sink.size() - found.length);
    if (count == 0) break;
    std::memcpy(sink.data() + found.length, at->second.copy->bytes().data() + skip, count);
    found.length += count;
  }
  return found;
}

}  // namespace pnfsrdma::initiator
