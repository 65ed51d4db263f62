// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/block_grains.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::mds {

BlockGrains::BlockGrains(Start start) {
  if (start == Start::kAllUsed) {
    used_.set();
    return;
  }
  free_count_ = kGrainsPerBlock;
  if (start == Start::kAllClean) clean_.set();
}

std::optional<GrainRange> BlockGrains::find(uint32_t count, bool clean) const {
  if (count == 0 || free_count_ < count) return std::nullopt;
  uint32_t run = 0;
  for (uint32_t at = 0; at < kGrainsPerBlock; ++at) {
    run = free_grain(at) && (!clean || clean_[at]) ? run + 1 : 0;
    if (run == count) return GrainRange{at + 1 - count, count};
  }
  return std::nullopt;
}

std::optional<GrainRange> BlockGrains::find_some(uint32_t count) const {
  std::optional<GrainRange> best;
  for (uint32_t at = 0; at < kGrainsPerBlock;) {
    const GrainRange run = run_at(at, count);
    if (run.count > 0 && (!best || run.count > best->count)) best = run;
    at += std::max(run.count, 1U);
  }
  return best;
}

std::optional<GrainRange> BlockGrains::find_dirty(uint32_t count) const {
  if (free_count_ == 0 || count == 0) return std::nullopt;
  for (uint32_t at = 0; at < kGrainsPerBlock; ++at) {
    if (free_grain(at) && !clean_[at]) return run_at(at, count);
  }
  return std::nullopt;
}

GrainRange BlockGrains::run_at(uint32_t first, uint32_t longest) const {
  uint32_t end = first;
  while (end < kGrainsPerBlock && end - first < longest && free_grain(end) && clean_[end] == clean_[first])
    ++end;
  return {first, end - first};
}

void BlockGrains::take(GrainRange range) {
  CHECK(is_free(range));
  for (uint32_t at = range.first; at < range.end(); ++at) {
    used_.set(at);
    clean_.reset(at);
  }
  free_count_ -= range.count;
}

void BlockGrains::give_back(GrainRange range, bool clean) {
  CHECK(is_used(range));
  for (uint32_t at = range.first; at < range.end(); ++at) {
    used_.reset(at);
    clean_.set(at, clean);
  }
  free_count_ += range.count;
}

void BlockGrains::rest(GrainRange range) {
  CHECK(is_used(range));
  for (uint32_t at = range.first; at < range.end(); ++at) {
    used_.reset(at);
    resting_.set(at);
  }
}

void BlockGrains::wake(GrainRange range) {
  for (uint32_t at = range.first; at < range.end(); ++at) {
    CHECK(resting_[at]);
    resting_.reset(at);
  }
  free_count_ += range.count;
}

bool BlockGrains::is_free(GrainRange range) const {
  for (uint32_t at = range.first; at < range.end(); ++at) {
    if (!free_grain(at)) return false;
  }
  return range.end() <= kGrainsPerBlock;
}

bool BlockGrains::is_used(GrainRange range) const {
  for (uint32_t at = range.first; at < range.end(); ++at) {
    if (!used_[at]) return false;
  }
  return range.end() <= kGrainsPerBlock;
}

bool BlockGrains::is_clean(GrainRange range) const {
  for (uint32_t at = range.first; at < range.end(); ++at) {
    if (!clean_[at]) return false;
  }
  return true;
}

}  // namespace pnfsrdma::mds
