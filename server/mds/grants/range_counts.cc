// SPDX-License-Identifier: Apache-2.0
#include "server/mds/grants/range_counts.h"

#include <algorithm>
#include <iterator>

#include "shared/base/check.h"

namespace pnfsrdma::mds {

// The entry that begins there; its count is that of the bytes in front.
RangeCounts::Counts::iterator RangeCounts::split(uint64_t offset) {
  const auto next = counts_.lower_bound(offset);
  if (next != counts_.end() && next->first == offset) return next;
  const size_t in_front = next == counts_.begin() ? 0 : std::prev(next)->second;
  return counts_.emplace_hint(next, offset, in_front);
}

// Nothing begins where the count stays the same.
void RangeCounts::join(uint64_t offset) {
  const auto entry = counts_.find(offset);
  const size_t in_front = entry == counts_.begin() ? 0 : std::prev(entry)->second;
  if (entry->second == in_front) counts_.erase(entry);
}

void RangeCounts::add(const ByteRange& range) {
  if (range.empty()) return;
  const auto first = split(range.begin);
  const auto last = split(range.end);
  for (auto entry = first; entry != last; ++entry) ++entry->second;
  join(range.begin);
  join(range.end);
}

void RangeCounts::remove(const ByteRange& range) {
  if (range.empty()) return;
  const auto first = split(range.begin);
  const auto last = split(range.end);
  for (auto entry = first; entry != last; ++entry) {
    CHECK(entry->second > 0);
    --entry->second;
  }
  join(range.begin);
  join(range.end);
}

// The entry that the byte belongs to; the end: it lies in front of all.
RangeCounts::Counts::const_iterator RangeCounts::at(uint64_t offset) const {
  const auto next = counts_.upper_bound(offset);
  return next == counts_.begin() ? counts_.end() : std::prev(next);
}

bool RangeCounts::covers(const ByteRange& range) const {
  if (range.empty()) return true;
  auto entry = at(range.begin);
  for (; entry != counts_.end() && entry->second > 0; ++entry) {
    if (std::next(entry)->first >= range.end) return true;
  }
  return false;
}

void RangeCounts::take_from(RangeSet& bytes) const {
  for (const ByteRange& range : bytes.all()) {
    auto entry = at(range.begin);
    if (entry == counts_.end()) entry = counts_.begin();
    for (; entry != counts_.end() && entry->first < range.end; ++entry) {
      if (entry->second == 0) continue;
      bytes.remove({std::max(entry->first, range.begin), std::min(std::next(entry)->first, range.end)});
    }
  }
}

}  // namespace pnfsrdma::mds
