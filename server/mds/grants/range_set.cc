// SPDX-License-Identifier: Apache-2.0
#include "server/mds/grants/range_set.h"

#include <algorithm>

namespace pnfsrdma::mds {

ByteRange intersection(const ByteRange& a, const ByteRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

ByteRange range_of(uint64_t offset, uint64_t length) {
  return {offset, length > kEndOfFile - offset ? kEndOfFile : offset + length};
}

void RangeSet::add(const ByteRange& range) {
  if (range.empty()) return;
  ByteRange grown = range;
  auto at = ranges_.upper_bound(range.begin);
  if (at != ranges_.begin() && std::prev(at)->second >= range.begin) --at;
  while (at != ranges_.end() && at->first <= grown.end) {
    grown = {std::min(grown.begin, at->first), std::max(grown.end, at->second)};
    at = ranges_.erase(at);
  }
  ranges_[grown.begin] = grown.end;
}

void RangeSet::remove(const ByteRange& range) {
  if (range.empty()) return;
  auto at = ranges_.upper_bound(range.begin);
  if (at != ranges_.begin()) --at;
  while (at != ranges_.end() && at->first < range.end) {
    const ByteRange old{at->first, at->second};
    if (!old.overlaps(range)) {
      ++at;
      continue;
    }
    at = ranges_.erase(at);
    if (old.begin < range.begin) ranges_[old.begin] = range.begin;
    if (range.end < old.end) ranges_[range.end] = old.end;
  }
}

bool RangeSet::overlaps(const ByteRange& range) const {
  if (range.empty()) return false;
  auto at = ranges_.lower_bound(range.end);
  return at != ranges_.begin() && std::prev(at)->second > range.begin;
}

bool RangeSet::contains(const ByteRange& range) const {
  if (range.empty()) return true;
  auto at = ranges_.upper_bound(range.begin);
  return at != ranges_.begin() && std::prev(at)->second >= range.end;
}

ByteRange RangeSet::hull() const {
  if (ranges_.empty()) return {};
  return {ranges_.begin()->first, ranges_.rbegin()->second};
}

std::optional<ByteRange> RangeSet::from(uint64_t offset) const {
  const auto behind = ranges_.upper_bound(offset);
  if (behind == ranges_.begin() || std::prev(behind)->second <= offset) return std::nullopt;
  return ByteRange{offset, std::prev(behind)->second};
}

std::vector<ByteRange> RangeSet::within(const ByteRange& range, size_t most) const {
  std::vector<ByteRange> found;
  auto at = ranges_.upper_bound(range.begin);
  if (at != ranges_.begin()) --at;
  for (; at != ranges_.end() && at->first < range.end && found.size() < most; ++at) {
    const ByteRange part = intersection({at->first, at->second}, range);
    if (!part.empty()) found.push_back(part);
  }
  return found;
}

}  // namespace pnfsrdma::mds
