// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/block_runs.h"

#include <algorithm>
#include <iterator>

namespace pnfsrdma::mds {

void BlockRuns::insert(uint64_t first, uint64_t count) {
  if (count == 0) return;
  uint64_t end = first + count;
  auto at = runs_.upper_bound(first);
  if (at != runs_.begin() && std::prev(at)->second >= first) --at;
  // Swallow every run that touches [first, end).
  while (at != runs_.end() && at->first <= end) {
    first = std::min(first, at->first);
    end = std::max(end, at->second);
    count_ -= at->second - at->first;
    at = runs_.erase(at);
  }
  runs_.emplace(first, end);
  count_ += end - first;
}

void BlockRuns::erase(uint64_t first, uint64_t count) {
  if (count == 0) return;
  const uint64_t end = first + count;
  auto at = runs_.upper_bound(first);
  if (at != runs_.begin() && std::prev(at)->second > first) --at;
  while (at != runs_.end() && at->first < end) {
    const auto [from, to] = *at;
    count_ -= to - from;
    at = runs_.erase(at);
    if (from < first) {
      runs_.emplace(from, first);
      count_ += first - from;
    }
    if (to > end) {
      runs_.emplace(end, to);
      count_ += to - end;
    }
  }
}

bool BlockRuns::contains(uint64_t block) const {
  const auto at = runs_.upper_bound(block);
  return at != runs_.begin() && std::prev(at)->second > block;
}

uint64_t BlockRuns::end() const {
  return runs_.empty() ? 0 : runs_.rbegin()->second;
}

std::vector<brick::Run> BlockRuns::without(const BlockRuns& other) const {
  BlockRuns rest = *this;
  for (const auto& [from, to] : other.runs_) rest.erase(from, to - from);
  std::vector<brick::Run> runs;
  runs.reserve(rest.runs_.size());
  for (const auto& [from, to] : rest.runs_) runs.push_back({from * brick::kBlockSize, to - from});
  return runs;
}

}  // namespace pnfsrdma::mds
