// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/free_runs.h"

#include <algorithm>
#include <iterator>

#include "shared/base/check.h"

namespace pnfsrdma::brick {

void FreeRuns::add(uint64_t first, uint64_t count) {
  by_place_.emplace(first, count);
  by_length_.emplace(count, first);
  size_ += count;
}

void FreeRuns::drop(uint64_t first, uint64_t count) {
  by_place_.erase(first);
  by_length_.erase({count, first});
  size_ -= count;
}

void FreeRuns::insert(uint64_t block) {
  uint64_t first = block;
  uint64_t count = 1;
  const auto behind = by_place_.lower_bound(block);
  CHECK(behind == by_place_.end() || behind->first != block);
  if (behind != by_place_.begin()) {
    const auto [before, length] = *std::prev(behind);
    CHECK(before + length <= block);
    if (before + length == block) {
      first = before;
      count += length;
      drop(before, length);
    }
  }
  if (const auto next = by_place_.find(block + 1); next != by_place_.end()) {
    const uint64_t length = next->second;
    count += length;
    drop(block + 1, length);
  }
  add(first, count);
}

void FreeRuns::remove(uint64_t block) {
  const auto behind = by_place_.upper_bound(block);
  CHECK(behind != by_place_.begin());
  const auto [first, length] = *std::prev(behind);
  CHECK(block < first + length);
  drop(first, length);
  if (block > first) add(first, block - first);
  if (block + 1 < first + length) add(block + 1, first + length - block - 1);
}

FreeRuns::ByLength::iterator FreeRuns::choose(uint64_t count, bool contiguous) {
  if (!contiguous) return by_length_.begin();
  const auto fits = by_length_.lower_bound({count, 0});
  return fits != by_length_.end() ? fits : std::prev(by_length_.end());
}

std::vector<PhysicalRun> FreeRuns::take(uint64_t count, bool contiguous) {
  CHECK(count <= size_);
  std::vector<PhysicalRun> taken;
  while (count > 0) {
    const auto [length, first] = *choose(count, contiguous);
    drop(first, length);
    const uint64_t used = std::min(count, length);
    if (used < length) add(first + used, length - used);
    taken.push_back({first, used});
    count -= used;
  }
  return taken;
}

}  // namespace pnfsrdma::brick
