// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/allocation_plan.h"

#include <algorithm>

namespace pnfsrdma::mds {

AllocationPlan plan_allocation(const ByteRange& needed, uint64_t wish_end, uint64_t size) {
  AllocationPlan plan{grains_of(needed), grains_of(needed)};
  const bool growing = needed.end > size;
  if (!growing) {
    // A hole inside the file: no more than the caller could use, and not without end.
    plan.wished.end = std::max(plan.needed.end,
                               round_down(std::min({wish_end, size, needed.end + kGrowthMax}), kGrainSize));
    return plan;
  }
  if (needed.end <= kSmallFileMax) {
    const uint64_t doubled = std::min({2 * size, wish_end, kSmallFileMax});
    plan.wished.end = std::max(plan.needed.end, round_up(doubled, kGrainSize));
    return plan;
  }
  // Far behind the end: somebody writes a sparse file, not a growing one.
  if (needed.begin > size && needed.begin - size > kGrowthMin) return plan;
  const uint64_t ahead = std::clamp(std::max(size, needed.end), kGrowthMin, kGrowthMax);
  const uint64_t end = std::min(std::max(wish_end, needed.end), needed.end + ahead);
  plan.wished.end = round_up(end, brick::kBlockSize);
  return plan;
}

AllocationPlan halved(const AllocationPlan& plan) {
  const uint64_t more = plan.wished.end - plan.needed.end;
  return {plan.needed, {plan.needed.begin, plan.needed.end + round_down(more / 2, kGrainSize)}};
}

uint64_t kept_end(uint64_t size) {
  constexpr uint64_t kWholeBlocksFrom = 8 * brick::kBlockSize;
  return round_up(size, size >= kWholeBlocksFrom ? brick::kBlockSize : kGrainSize);
}

}  // namespace pnfsrdma::mds
