// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/placement.h"

#include <algorithm>

namespace pnfsrdma::mds {

namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): neighbouring numbers fall far apart.
uint64_t scattered(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

BrickNumber drawn(const std::vector<Candidate>& candidates, InodeId inode) {
  uint64_t total = 0;
  for (const Candidate& candidate : candidates) total += candidate.free_bytes;
  if (total == 0) return kNoBrick;
  uint64_t lot = scattered(inode) % total;
  for (const Candidate& candidate : candidates) {
    if (lot < candidate.free_bytes) return candidate.brick;
    lot -= candidate.free_bytes;
  }
  return kNoBrick;
}

}  // namespace

std::vector<BrickNumber> order_of(std::vector<Candidate> candidates, InodeId inode, BrickNumber home) {
  const auto has = [&](const Candidate& candidate) { return candidate.brick == home; };
  const BrickNumber first =
      std::any_of(candidates.begin(), candidates.end(), has) ? home : drawn(candidates, inode);
  std::ranges::sort(candidates, [first](const Candidate& a, const Candidate& b) {
    if ((a.brick == first) != (b.brick == first)) return a.brick == first;
    return a.free_bytes != b.free_bytes ? a.free_bytes > b.free_bytes : a.brick < b.brick;
  });
  std::vector<BrickNumber> order;
  for (const Candidate& candidate : candidates) order.push_back(candidate.brick);
  return order;
}

}  // namespace pnfsrdma::mds
