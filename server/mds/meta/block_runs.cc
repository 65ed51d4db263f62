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

BlockRuns::Runs::const_iterator BlockRuns::behind(uint64_t block) const {
  auto at = runs_.upper_bound(block);
  if (at != runs_.begin() && std::prev(at)->second > block) --at;
  return at;
}

std::vector<brick::Run> BlockRuns::without(const BlockRuns& other, uint64_t from, uint64_t to,
                                           size_t most) const {
  std::vector<brick::Run> rest;
  const auto add = [&rest](uint64_t first, uint64_t end) {
    if (first < end) rest.push_back({first * brick::kBlockSize, end - first});
  };
  for (auto at = behind(from); at != runs_.end() && at->first < to; ++at) {
    uint64_t first = std::max(at->first, from);
    const uint64_t end = std::min(at->second, to);
    for (auto there = other.behind(first); there != other.runs_.end() && there->first < end; ++there) {
      add(first, there->first);
      if (rest.size() >= most) return rest;
      first = there->second;
    }
    add(first, end);
    if (rest.size() >= most) return rest;
  }
  return rest;
}

}  // namespace pnfsrdma::mds
