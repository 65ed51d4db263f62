// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/range_set.h"

#include <algorithm>

namespace pnfsrdma::initiator {

void RangeSet::add(uint64_t offset, uint64_t length) {
  if (length == 0) return;
  uint64_t end = range_end(offset, length);
  // The first range that touches the new one or lies behind it.
  auto first = std::lower_bound(ranges_.begin(), ranges_.end(), offset,
                                [](const FileRange& range, uint64_t wanted) { return range.end() < wanted; });
  auto last = first;
  while (last != ranges_.end() && last->offset <= end) {
    offset = std::min(offset, last->offset);
    end = std::max(end, last->end());
    ++last;
  }
  const FileRange joined{offset, end - offset};
  if (first == last) {
    ranges_.insert(first, joined);
    if (ranges_.size() > ranges_max_) join_nearest();
  } else {
    *first = joined;
    ranges_.erase(first + 1, last);
  }
}

void RangeSet::remove(uint64_t offset, uint64_t length) {
  const uint64_t end = range_end(offset, length);
  const auto first = first_behind(offset);
  auto last = first;
  while (last != ranges_.end() && last->offset < end) ++last;
  if (first == last) return;
  const FileRange front{first->offset, offset > first->offset ? offset - first->offset : 0};
  const uint64_t last_end = (last - 1)->end();
  const FileRange back{end, last_end > end ? last_end - end : 0};
  auto at = ranges_.erase(first, last);
  if (back.length > 0) at = ranges_.insert(at, back);
  if (front.length > 0) ranges_.insert(at, front);
  // A hole in the middle makes one more; never less is covered than was added.
  if (ranges_.size() > ranges_max_) join_nearest();
}

bool RangeSet::covers(uint64_t offset, uint64_t length) const {
  if (length == 0) return true;
  const auto found = first_behind(offset);
  return found != ranges_.end() && found->offset <= offset && found->end() >= range_end(offset, length);
}

bool RangeSet::overlaps(uint64_t offset, uint64_t length) const {
  const auto found = first_behind(offset);
  return found != ranges_.end() && found->offset < range_end(offset, length);
}

std::vector<FileRange>::const_iterator RangeSet::first_behind(uint64_t offset) const {
  return std::upper_bound(ranges_.begin(), ranges_.end(), offset,
                          [](uint64_t wanted, const FileRange& range) { return wanted < range.end(); });
}

void RangeSet::join_nearest() {
  size_t best = 0;
  uint64_t best_gap = UINT64_MAX;
  for (size_t i = 0; i + 1 < ranges_.size(); ++i) {
    const uint64_t gap = ranges_[i + 1].offset - ranges_[i].end();
    if (gap < best_gap) {
      best = i;
      best_gap = gap;
    }
  }
  ranges_[best].length = ranges_[best + 1].end() - ranges_[best].offset;
  ranges_.erase(ranges_.begin() + static_cast<ptrdiff_t>(best) + 1);
}

void RangeSet::cut(uint64_t offset) {
  std::erase_if(ranges_, [&](const FileRange& range) { return range.offset >= offset; });
  if (!ranges_.empty() && ranges_.back().end() > offset)
    ranges_.back().length = offset - ranges_.back().offset;
}

}  // namespace pnfsrdma::initiator
