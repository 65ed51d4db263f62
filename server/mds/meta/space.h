// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <optional>
#include <vector>

#include "server/mds/meta/brick_records.h"
#include "server/mds/meta/extents.h"
#include "server/mds/meta/grain_pool.h"
#include "server/mds/meta/key_value.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/brick/protocol.h"

namespace pnfsrdma::mds {

// What differs between the blocks a brick holds for us and those our extents name.
struct SpaceDifference {
  std::vector<brick::Run> leaked;   // on the brick, in no extent: free them
  std::vector<brick::Run> missing;  // in an extent, not on the brick: data loss, to be reported
};

// The part of the logical address space that is one brick's: addresses, each used once, and the GrainPool
// below them. Nothing of it is stored but a cursor of addresses; the rest is the extents, read at a start
// (BrickList does). Until they are read nothing can be taken, and what is given back waits. Crash rule: allocate
// on the brick, then commit the extents; commit the extents, and when that is synced, free here, then on the
// brick. Control loop only.
//
//   a file grows:  take() -> brick alloc(fresh) -> allocated(fresh) -> zero what is not clean -> commit
//   extents
//                  (refused(fresh), put_back(the other pieces) if one of them fails)
//   a file shrinks: commit extents without it -> when synced: free(logical, length) -> blocks to free on the
//                  brick
class Space {
 public:
  // Where its addresses come from.
  struct Addresses {
    BrickNumber brick = kFirstBrick;
    std::vector<uint32_t> zones{0};  // ascending
    // One more zone when those are used up; in the store before any extent that names it.
    std::function<Result<uint32_t>()> next_zone;
  };

  // begin(), then used().
  Space(KeyValueStore& store, const Clock& clock, Addresses addresses);
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  // EUCLEAN: the counter of addresses cannot be read.
  Result<> begin();
  // What the extents had when begin() was called. What was given back since then follows in give_back().
  void used(GrainPool pool);
  // The first `most` of what was given back before used(). True: that was all, everything is known. Blocks that become
  // empty are not told: the brick has them and no extent, as compare() says.
  bool give_back(size_t most);
  bool known() const { return known_; }
  // Blocks the brick has, in use or not.
  void set_capacity(uint64_t blocks) { pool_.set_capacity(blocks); }
  // What the brick says is free, in blocks: for who shows it, until all is known.
  void presume_free(uint64_t blocks) { presumed_free_ = blocks; }
  // EBUSY: files or snapshots have something of it, or it is not known yet.
  Result<> check_unused() const;

  // See GrainPool. Fresh blocks have consecutive addresses never used before, by any boot. EAGAIN: there will
  // be that much soon, or the store stalls; EMLINK: only in too many pieces; ENOSPC; EIO of the store.
  Result<Taken> take(const GrainRequest& request);
  void allocated(const brick::Run& fresh) { pool_.allocated(fresh); }
  void refused(const brick::Run& fresh) { pool_.refused(fresh); }
  // The brick has not as many blocks as it says, and none is on its way back to it.
  void lacks(const brick::Run& fresh);

  // Pieces that came from here and were never reachable by anybody. Blocks that became empty are returned, no
  // longer ours: free them on the brick.
  std::vector<brick::Run> put_back(const std::vector<Piece>& pieces) { return pool_.put_back(pieces); }
  // Part of a used range is in no extent any more, durably, and no handle reaches it. Whole blocks that
  // became empty are returned, no longer ours: free them on the brick. Other grains rest for
  // brick::kQuarantineMs, then can be taken, not clean.
  std::vector<brick::Run> free(uint64_t logical, uint64_t length);
  // For a background zeroer: takes free grains that are not clean, at most `bytes`, in one piece. zeroed()
  // follows, with the piece as clean as it is by then. nullopt: there are none.
  std::optional<Piece> take_dirty(uint64_t bytes);
  std::vector<brick::Run> zeroed(const Piece& piece) { return pool_.zeroed(piece); }

  // Of the addresses [from, to): `listed` are all runs that the brick has there, in any order. Only as far as `most`
  // runs are missing: the rest begins behind the last one. All must be known.
  SpaceDifference compare(const std::vector<brick::Run>& listed, uint64_t from = 0, uint64_t to = UINT64_MAX,
                          size_t most = SIZE_MAX) const;

  uint64_t used_blocks() const;
  // In blocks of ours, what rests or is being zeroed too.
  uint64_t free_grain_bytes() const { return pool_.unused_in_blocks() * kGrainSize; }
  // What take() could give: now; and in a while.
  uint64_t free_bytes() const { return known_ ? pool_.free_grains() * kGrainSize : 0; }
  uint64_t unused_bytes() const;

 private:
  uint64_t zone_end() const { return (uint64_t{addresses_.zones.back()} + 1) * kBlocksPerZone; }
  Result<> enter_next_zone();
  Result<> reserve_addresses(uint64_t count);

  KeyValueStore& store_;
  const Clock& clock_;
  Addresses addresses_;
  uint64_t next_block_;      // number of the next fresh block; the first of a zone is never given out
  uint64_t reserved_block_;  // in the store: no block from this one on has ever been given out
  GrainPool pool_;
  bool known_ = false;
  std::deque<LogicalRange> given_back_;  // before it is known what of it is in use
  uint64_t presumed_free_ = UINT64_MAX;
};

}  // namespace pnfsrdma::mds
