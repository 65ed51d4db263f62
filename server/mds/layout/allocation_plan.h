// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/mds/layout/range_set.h"
#include "server/mds/meta/extents.h"
#include "shared/brick/protocol.h"

// How much memory a file gets, and of which kind, when somebody is about to write where it has a hole. Pure
// functions.
namespace pnfsrdma::mds {

// Files up to this size share blocks with others, by grains; pieces of holes below it too.
inline constexpr uint64_t kSmallFileMax = uint64_t{256} << 10;
// A growing file gets as much again as it has, between these two.
inline constexpr uint64_t kGrowthMin = brick::kBlockSize;
inline constexpr uint64_t kGrowthMax = uint64_t{64} << 20;

constexpr uint64_t round_down(uint64_t value, uint64_t unit) {
  return value - value % unit;
}
constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return value > kEndOfFile - (unit - 1) ? round_down(kEndOfFile, unit) : round_down(value + unit - 1, unit);
}
constexpr ByteRange grains_of(const ByteRange& range) {
  return {round_down(range.begin, kGrainSize), round_up(range.end, kGrainSize)};
}

struct AllocationPlan {
  ByteRange needed;  // whole grains, without which the caller can't go on
  ByteRange wished;  // at least that
};

// `needed` is what must be there, `wish_end` how far the caller could make use of more; `size` is the file's,
// or where its memory ends directly in front of `needed`: a client that writes ahead under a layout has not
// committed a size yet.
AllocationPlan plan_allocation(const ByteRange& needed, uint64_t wish_end, uint64_t size);

// The same need with half of what was wished beyond it: a pool that is nearly full still gives large pieces.
AllocationPlan halved(const AllocationPlan& plan);

// Where the memory of a file of `size` bytes ends when nobody is writing it: large files keep their last
// block whole, so that appending to one does not scatter it; for small ones that would be most of what they
// take.
uint64_t kept_end(uint64_t size);

}  // namespace pnfsrdma::mds
