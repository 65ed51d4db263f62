// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/range_locks.h"

#include <algorithm>

namespace pnfsrdma::nfs4 {

namespace {

// Are they one range when both have the same mode? `second` begins behind the end of `first`.
bool adjoin(const LockRange& first, const LockRange& second) {
  return first.exclusive == second.exclusive && first.last + 1 == second.first;
}

}  // namespace

std::optional<LockRange> lock_range(uint64_t offset, uint64_t length, bool exclusive) {
  if (length == 0) return std::nullopt;
  if (length == UINT64_MAX) return LockRange{offset, UINT64_MAX, exclusive};
  if (length > UINT64_MAX - offset) return std::nullopt;
  return LockRange{offset, offset + (length - 1), exclusive};
}

uint64_t length_of(const LockRange& range) {
  return range.last == UINT64_MAX ? UINT64_MAX : range.last - range.first + 1;
}

void RangeLocks::unlock(const LockRange& range) {
  std::vector<LockRange> left;
  left.reserve(ranges_.size() + 1);
  for (const LockRange& held : ranges_) {
    if (held.last < range.first || held.first > range.last) {
      left.push_back(held);
      continue;
    }
    if (held.first < range.first) left.push_back({held.first, range.first - 1, held.exclusive});
    if (held.last > range.last) left.push_back({range.last + 1, held.last, held.exclusive});
  }
  ranges_ = std::move(left);
}

void RangeLocks::lock(const LockRange& range) {
  unlock(range);
  const auto behind =
      std::ranges::find_if(ranges_, [&](const LockRange& held) { return held.first > range.last; });
  const auto at = ranges_.insert(behind, range);
  if (at + 1 != ranges_.end() && adjoin(*at, *(at + 1))) {
    at->last = (at + 1)->last;
    ranges_.erase(at + 1);
  }
  if (at != ranges_.begin() && adjoin(*(at - 1), *at)) {
    (at - 1)->last = at->last;
    ranges_.erase(at);
  }
}

const LockRange* RangeLocks::conflict(const LockRange& wanted) const {
  const auto found = std::ranges::find_if(ranges_, [&](const LockRange& held) {
    return held.first <= wanted.last && wanted.first <= held.last && (held.exclusive || wanted.exclusive);
  });
  return found == ranges_.end() ? nullptr : &*found;
}

}  // namespace pnfsrdma::nfs4
