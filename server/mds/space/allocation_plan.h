// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/mds/grants/range_set.h"
#include "server/mds/meta/extents.h"
#include "shared/brick/protocol.h"

// How much memory a file gets when somebody is about to write where it has a hole. Pure functions.
namespace pnfsrdma::mds {

// A file grows ahead by as much as it has, and no more than this.
inline constexpr uint64_t kGrowthMax = uint64_t{64} << 20;
// Inside a file, and where it does not grow in sequence, memory comes in aligned pieces of this size: fewer
// extents, and a sparse file stays sparse.
inline constexpr uint64_t kSparseUnit = uint64_t{16} << 10;
// A hole that is filled in sequence is filled ahead by this fraction of what lies in front: nobody knows
// later which of it was written, so it stays.
inline constexpr uint64_t kFillingAhead = 8;

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
  ByteRange wished;  // at least that; behind `needed` as far as there is room to spare
  bool operator==(const AllocationPlan&) const = default;
};

// What is known of the file when it is planned.
struct Growth {
  ByteRange needed;         // what must be there
  uint64_t wish_end = 0;    // how far the caller could make use of more
  uint64_t size = 0;        // of the file
  uint64_t space_used = 0;  // its memory, all of it
  uint64_t in_front = 0;  // and the part that ends where `needed` begins: a client that writes ahead under a
                          // layout has not committed a size yet
};
AllocationPlan plan_allocation(const Growth& growth);

// Where the memory of a file of `size` bytes ends when nobody is writing it.
constexpr uint64_t kept_end(uint64_t size) {
  return round_up(size, kGrainSize);
}

}  // namespace pnfsrdma::mds
