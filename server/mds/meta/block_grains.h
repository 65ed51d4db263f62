// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>

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
// clean (all zeros, durably) or not. 192 bytes.
class BlockGrains {
 public:
  enum class Start { kAllUsed, kAllClean, kAllDirty };
  explicit BlockGrains(Start start);

  // The first `count` free grains in a row, clean ones if `clean`. nullopt: none.
  std::optional<GrainRange> find(uint32_t count, bool clean) const;
  // The longest run of free grains that are all clean, or all not, of at most `count`. nullopt: nothing is
  // free.
  std::optional<GrainRange> find_some(uint32_t count) const;

  // The first grains, at most `count`, that are free and not clean.
  std::optional<GrainRange> find_dirty(uint32_t count) const;

  void take(GrainRange range);                   // free -> used
  void give_back(GrainRange range, bool clean);  // used -> free
  void rest(GrainRange range);                   // used -> resting
  void wake(GrainRange range);                   // resting -> free, not clean
                                                 // free -> free and clean

  bool is_free(GrainRange range) const;
  bool is_used(GrainRange range) const;
  bool is_clean(GrainRange range) const;
  uint32_t used_count() const { return static_cast<uint32_t>(used_.count()); }
  uint32_t free_count() const { return free_count_; }

 private:
  bool free_grain(uint32_t at) const { return !used_[at] && !resting_[at]; }
  // Free grains from `first` on that are as clean as it is.
  GrainRange run_at(uint32_t first, uint32_t longest) const;

  std::bitset<kGrainsPerBlock> used_;
  std::bitset<kGrainsPerBlock> resting_;
  std::bitset<kGrainsPerBlock> clean_;
  uint32_t free_count_ = 0;
};

}  // namespace pnfsrdma::mds
