// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace pnfsrdma::brick {

// Physically contiguous blocks.
struct PhysicalRun {
  uint64_t first = 0;
  uint64_t count = 0;
  bool operator==(const PhysicalRun&) const = default;
};

// The blocks that can be given away, as runs by place and by length. A part of the block table; control loop
// only.
class FreeRuns {
 public:
  // Puts one block in; it joins its neighbours.
  void insert(uint64_t block);
  // Takes one block out that is there.
  void remove(uint64_t block);
  uint64_t size() const { return size_; }

  // Takes `count` blocks (the caller has checked that they are there). Contiguous: the shortest run that is
  // long enough, else the longest ones first. Otherwise the shortest runs first, so that long ones stay whole
  // for who wants them.
  std::vector<PhysicalRun> take(uint64_t count, bool contiguous);

 private:
  using ByLength = std::set<std::pair<uint64_t, uint64_t>>;  // length, first block

  ByLength::iterator choose(uint64_t count, bool contiguous);
  void add(uint64_t first, uint64_t count);
  void drop(uint64_t first, uint64_t count);

  std::map<uint64_t, uint64_t> by_place_;  // first block -> length
  ByLength by_length_;
  uint64_t size_ = 0;
};

}  // namespace pnfsrdma::brick
