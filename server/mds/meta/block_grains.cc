// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/block_grains.h"

#include "shared/base/check.h"

namespace pnfsrdma::mds {

BlockGrains::BlockGrains(Start start) {
  if (start == Start::kAllDirty) {
    free_count_ = kGrainsPerBlock;
    return;
  }
  used_.set();
  used_count_ = kGrainsPerBlock;
}

void BlockGrains::take(GrainRange range) {
  CHECK(range.end() <= kGrainsPerBlock);
  for (uint32_t at = range.first; at < range.end(); ++at) {
    CHECK(is_free(at));
    used_.set(at);
    clean_.reset(at);
  }
  used_count_ += range.count;
  free_count_ -= range.count;
}

void BlockGrains::give_back(GrainRange range, bool clean) {
  CHECK(range.end() <= kGrainsPerBlock);
  for (uint32_t at = range.first; at < range.end(); ++at) {
    CHECK(used_[at]);
    used_.reset(at);
    clean_.set(at, clean);
  }
  used_count_ -= range.count;
  free_count_ += range.count;
}

void BlockGrains::rest(GrainRange range) {
  CHECK(range.end() <= kGrainsPerBlock);
  for (uint32_t at = range.first; at < range.end(); ++at) {
    CHECK(used_[at]);
    used_.reset(at);
    resting_.set(at);
  }
  used_count_ -= range.count;
}

void BlockGrains::wake(GrainRange range) {
  for (uint32_t at = range.first; at < range.end(); ++at) {
    CHECK(resting_[at]);
    resting_.reset(at);
  }
  free_count_ += range.count;
}

GrainRange BlockGrains::run_at(uint32_t first, uint32_t longest) const {
  uint32_t end = first;
  while (end < kGrainsPerBlock && end - first < longest && is_free(end) && clean_[end] == clean_[first])
    ++end;
  return {first, end - first};
}

GrainRange BlockGrains::with_neighbours(GrainRange range) const {
  uint32_t first = range.first;
  uint32_t end = range.end();
  while (first > 0 && is_free(first - 1)) --first;
  while (end < kGrainsPerBlock && is_free(end)) ++end;
  return {first, end - first};
}

}  // namespace pnfsrdma::mds
