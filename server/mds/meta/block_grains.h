// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>

#include "server/mds/meta/extents.h"
#include "shared/brick/protocol.h"

namespace pnfsrdma::mds {

inline constexpr uint32_t kGrainsPerBlock = static_cast<uint32_t>(brick::kBlockSize / kGrainSize);

// `count` grains of one block from number `first` on.
struct GrainRange {
  uint32_t first = 0;
  uint32_t count = 0;
  uint32_t end() const { return first + count; }
  bool operator==(const GrainRange&) const = default;
};

// The grains of one block that is not wholly used: each is used, resting (just freed), or free; a free one is
// clean (all zeros, durably) or not. 200 bytes.
class BlockGrains {
 public:
  enum class Start { kAllUsed, kAllDirty };
  explicit BlockGrains(Start start);

  void take(GrainRange range);                   // free -> used
  void give_back(GrainRange range, bool clean);  // used -> free
  void rest(GrainRange range);                   // used -> resting
  void wake(GrainRange range);                   // resting -> free, not clean

  // From `first` on: the free grains that are as clean as it is, at most `longest`; empty if it is not free.
  GrainRange run_at(uint32_t first, uint32_t longest = kGrainsPerBlock) const;
  // `range` and the free grains that touch it at both ends.
  GrainRange with_neighbours(GrainRange range) const;

  bool is_free(uint32_t at) const { return !used_[at] && !resting_[at]; }
  bool is_clean(uint32_t at) const { return clean_[at]; }
  uint32_t used_count() const { return used_count_; }
  uint32_t free_count() const { return free_count_; }
  uint32_t resting_count() const { return kGrainsPerBlock - used_count_ - free_count_; }

 private:
  std::bitset<kGrainsPerBlock> used_;
  std::bitset<kGrainsPerBlock> resting_;
  std::bitset<kGrainsPerBlock> clean_;
  uint32_t used_count_ = 0;
  uint32_t free_count_ = 0;
};

}  // namespace pnfsrdma::mds
