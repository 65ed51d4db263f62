// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "server/mds/meta/block_grains.h"
#include "server/mds/meta/block_runs.h"
#include "server/mds/meta/brick_records.h"
#include "server/mds/meta/extents.h"
#include "server/mds/meta/key_value.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/brick/protocol.h"

namespace pnfsrdma::mds {

// Grains given to a caller. Not clean: they may hold bytes of another file and must be zeroed on the brick,
// durably, before anybody may reach them.
struct Piece {
  uint64_t logical = 0;
  uint64_t length = 0;
  bool clean = false;
  bool operator==(const Piece&) const = default;
};

// What differs between the blocks a brick holds for us and those our extents name.
struct SpaceDifference {
  std::vector<brick::Run> leaked;   // on the brick, in no extent: free them
  std::vector<brick::Run> missing;  // in an extent, not on the brick: data loss, to be reported
};

// The part of the logical address space that is one brick's: which blocks are ours, which grains in them are
// free. Nothing of it is stored but a cursor of addresses; the rest is the extents, scanned at open
// (BrickList does). Crash rule: allocate on the brick, then commit the extents; commit the extents, and when
// that is synced, free here, then on the brick. Control loop only.
//
//   a large file: base = take_blocks(n) -> brick alloc(base, n) -> commit extents
//                 (give_up_blocks(base, n) if either fails)
//   a small file: take_grains(bytes); if empty: base = take_blocks(1) -> brick alloc -> share_block(base,
//   bytes) release:      commit extents without it -> when synced: free(logical, length) -> blocks to free on
//   the brick
//
// No block stays empty: whoever gives the last used grain of one back gets the block, to free it on the
// brick.
class Space {
 public:
  // Where its addresses come from.
  struct Addresses {
    BrickNumber brick = kFirstBrick;
    std::vector<uint32_t> zones{0};  // ascending
    // One more zone when those are used up; in the store before any extent that names it.
    std::function<Result<uint32_t>()> next_zone;
  };

  // Empty: use() every extent of the brick, then begin().
  Space(KeyValueStore& store, const Clock& clock, Addresses addresses);
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  // An extent has this range.
  void use(uint64_t logical, uint64_t length);
  // All extents are known. EUCLEAN: the counter of addresses cannot be read.
  Result<> begin();

  // `count` fresh, consecutive block addresses: never used before, by any boot. They count as used from now
  // on. EAGAIN, EIO of the store; ENOSPC when the addresses are spent,
  // or for more than a zone at a time.
  Result<uint64_t> take_blocks(uint64_t count);
  // The brick refused, or the commit failed and the brick has freed them again. The addresses are not used
  // again.
  void give_up_blocks(uint64_t logical, uint64_t count);
  // A block just allocated by take_blocks(1) and the brick, all of it clean: its first `bytes` (rounded up to
  // grains, at most a block) are the caller's, the rest is for take_grains().
  Piece share_block(uint64_t logical, uint64_t bytes);

  // `bytes` (rounded up to grains) from blocks that have room, first fit, one piece if any block has that
  // many in a row, else several; clean grains before others. Empty if there is not that much room.
  std::vector<Piece> take_grains(uint64_t bytes);
  // A piece that came from here and was never reachable by anybody: back at once, as clean as it says. A
  // block that became empty is returned, no longer ours: free it on the brick.
  std::vector<brick::Run> put_back(const Piece& piece);

  // Part of a used range is in no extent any more, durably, and no handle reaches it. Whole blocks that
  // became empty are returned, no longer ours: free them on the brick. Other grains rest for
  // brick::kQuarantineMs, then can be taken, not clean.
  std::vector<brick::Run> free(uint64_t logical, uint64_t length);
  // For a background zeroer: takes free grains that are not clean, at most `bytes`, in one piece. It zeroes
  // them and puts them back as clean. nullopt: there are none (among the blocks looked at).
  std::optional<Piece> take_dirty(uint64_t bytes);

  // `listed`: all runs the brick has, in any order.
  SpaceDifference compare(const std::vector<brick::Run>& listed) const;

  uint64_t used_blocks() const { return ours_.count(); }
  uint64_t free_grain_bytes() const;  // in shared blocks, resting ones too

 private:
  struct Resting {
    SteadyTime until;
    uint64_t block;
    GrainRange grains;
  };
  using Shared = std::map<uint64_t, BlockGrains>;

  uint64_t zone_end() const { return (uint64_t{addresses_.zones.back()} + 1) * kBlocksPerZone; }
  Result<> enter_next_zone();
  Result<> reserve_addresses(uint64_t count);
  void wake_rested();
  std::optional<Piece> take_row(uint32_t count, bool clean);
  std::vector<Piece> take_several(uint32_t count);
  Piece take_from(Shared::iterator block, GrainRange grains);
  std::vector<brick::Run> give_up_emptied(const BlockRuns& emptied);
  // Of one block. True if nothing in it is used any more.
  bool free_grains(uint64_t block, GrainRange grains);

  KeyValueStore& store_;
  const Clock& clock_;
  Addresses addresses_;
  uint64_t next_block_;      // number of the next fresh block; the first of a zone is never given out
  uint64_t reserved_block_;  // in the store: no block from this one on has ever been given out
  BlockRuns ours_;
  Shared shared_;                // those of ours that are not wholly used
  std::deque<Resting> resting_;  // oldest first
};

}  // namespace pnfsrdma::mds
