// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/console/inventory.h"

namespace pnfsrdma::console {

namespace {

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
};

uint64_t union_of(std::vector<Range> ranges) {
  std::ranges::sort(ranges, {}, &Range::begin);
  uint64_t bytes = 0;
  uint64_t end = 0;
  for (const Range& range : ranges) {
    if (range.end <= end) continue;
    bytes += range.end - std::max(range.begin, end);
    end = range.end;
  }
  return bytes;
}

}  // namespace

// By logical addresses: those of all bricks are one space.
Reach reach_of(const std::vector<Grant>& grants) {
  std::vector<Range> all;
  std::vector<Range> writable;
  for (const Grant& grant : grants) {
    all.push_back({grant.logical, grant.logical + grant.length});
    if (grant.writable) writable.push_back(all.back());
  }
  return {union_of(std::move(all)), union_of(std::move(writable))};
}

}  // namespace pnfsrdma::console
