// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "server/mds/meta/block_grains.h"
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

// The logical address space of one brick: which blocks are ours, which grains in them are free. Nothing of it
// is stored but a cursor of addresses; the rest is the extents, scanned at open. Crash rule: allocate on the
// brick, then commit the extents; commit the extents, and when that is synced, free here, then on the brick.
// Control loop only.
//
//   a large file:  base = take_blocks(n) -> brick alloc(base, n) -> commit extents (give_up_blocks(base, n)
//   if either fails) a small file:  take_grains(bytes); if empty: base = take_blocks(1) -> brick alloc ->
//   share_block(base) -> take_grains again release:       commit extents without it -> when synced:
//   free(logical, length) -> blocks to free on the brick
class Space {
 public:
  // Scans all extents. EUCLEAN with an explanation when they overlap.
  static Result<std::unique_ptr<Space>> open(KeyValueStore& store, const Clock& clock);
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  // `count` fresh, consecutive block addresses: never used before, by any boot. They count as used from now
  // on. EAGAIN, EIO of the store; ENOSPC when 2^63 bytes of addresses are spent.
  Result<uint64_t> take_blocks(uint64_t count);
  // The brick refused, or the commit failed and the brick has freed them again. The addresses are not used
  // again.
  void give_up_blocks(uint64_t logical, uint64_t count);
  // A block just allocated by take_blocks(1) and the brick: all of its grains, clean, are for take_grains().
  void share_block(uint64_t logical);

  // `bytes` (rounded up to grains) from blocks that have room, first fit, one piece if any block has that
  // many in a row, else several; clean grains before others. Empty if there is not that much room.
  std::vector<Piece> take_grains(uint64_t bytes);
  // Of take_grains(), and never reachable by anybody: back at once, as clean as it was, or as `clean` says
  // now. Blocks that became empty stay for the next taker.
  void put_back(const Piece& piece);

  // Part of a used range is in no extent any more, durably, and no handle reaches it. Whole blocks that
  // became empty are returned, no longer ours: free them on the brick. Other grains rest for
  // brick::kQuarantineMs, then can be taken, not clean.
  std::vector<brick::Run> free(uint64_t logical, uint64_t length);
  // Grains that nobody has were zeroed durably in the background.
  void mark_clean(uint64_t logical, uint64_t length);
  // Free grains that are not clean, at most `limit` pieces: what a background zeroer may take (take_piece),
  // zero, put back.
  std::vector<Piece> dirty_free(size_t limit) const;
  // Takes exactly this free range, for the zeroer. False if any of it is not free.
  bool take_piece(uint64_t logical, uint64_t length);

  // `listed`: all runs the brick has, in any order.
  SpaceDifference compare(const std::vector<brick::Run>& listed) const;

  uint64_t used_blocks() const;
  uint64_t free_grain_bytes() const;  // in shared blocks, resting ones too

 private:
  struct Resting {
    SteadyTime until;
    uint64_t logical;
    uint64_t length;
  };

  Space(KeyValueStore& store, const Clock& clock) : store_(store), clock_(clock) {}
  Result<> rebuild();
  Result<> reserve_addresses(uint64_t blocks);
  void wake_rested();

  KeyValueStore& store_;
  const Clock& clock_;
  uint64_t next_block_ = 0;            // block number of the next fresh address
  uint64_t reserved_block_ = 0;        // durable in order: no address of this one or above was ever given out
  std::map<uint64_t, uint64_t> runs_;  // our blocks: first block number -> count, never adjacent
  std::map<uint64_t, BlockGrains> shared_;  // those that are not wholly used
  std::deque<Resting> resting_;             // oldest first
};

}  // namespace pnfsrdma::mds
