// SPDX-License-Identifier: Apache-2.0
#include "server/mds/space/allocation_plan.h"

#include <algorithm>

namespace pnfsrdma::mds {

namespace {

// No byte of a file lies behind; whole grains, and sparse units.
constexpr uint64_t kFileEndMax = kFileSizeMax + 1;
static_assert(kFileEndMax % kSparseUnit == 0);

AllocationPlan in_sparse_units(const AllocationPlan& plan, uint64_t ahead_end, uint64_t end_max) {
  const uint64_t end = std::max(round_up(plan.needed.end, kSparseUnit), round_down(ahead_end, kSparseUnit));
  return {plan.needed,
          {round_down(plan.needed.begin, kSparseUnit), std::max(plan.needed.end, std::min(end, end_max))}};
}

}  // namespace

AllocationPlan plan_allocation(const Growth& growth) {
  const AllocationPlan plan{grains_of(growth.needed), grains_of(growth.needed)};
  const uint64_t wish_end =
      std::max(std::min(round_up(growth.wish_end, kGrainSize), kFileEndMax), plan.needed.end);
  if (plan.needed.end <= kept_end(growth.size)) {
    const uint64_t ahead = growth.in_front / kFillingAhead;
    return in_sparse_units(plan, std::min(plan.needed.end + std::min(ahead, kGrowthMax), wish_end),
                           kept_end(growth.size));
  }
  const bool in_sequence = plan.needed.begin <= kept_end(growth.size) || growth.in_front > 0;
  if (!in_sequence) return in_sparse_units(plan, plan.needed.end, kEndOfFile);
  const uint64_t ahead = std::min({growth.space_used, plan.needed.begin, kGrowthMax});
  return {plan.needed,
          {plan.needed.begin, std::min(round_up(plan.needed.end + ahead, kGrainSize), wish_end)}};
}

}  // namespace pnfsrdma::mds
