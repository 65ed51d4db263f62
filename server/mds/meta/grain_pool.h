// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "server/mds/meta/block_grains.h"
#include "server/mds/meta/block_runs.h"
#include "shared/base/clock.h"
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

// Where an extent is.
struct LogicalRange {
  uint64_t logical = 0;
  uint64_t length = 0;
  uint64_t end() const { return logical + length; }
  auto operator<=>(const LogicalRange&) const = default;
};

// What somebody needs, in grains.
struct GrainRequest {
  uint64_t hard = 0;       // not less
  uint64_t soft = 0;       // behind that, what can be had without splitting it
  uint64_t goal = 0;       // the logical address that would join on to what the file has; 0: none
  bool scattered = false;  // any number of pieces is welcome: nobody will register them
};

enum class Shortage {
  kWait,       // enough is free, but some of it rests, is being zeroed, or is on its way from the brick
  kScattered,  // enough is free, in more than kPiecesMax pieces
  kFull,
};

// Pieces in the order of the file. `fresh`: blocks, named by pieces among them, that the brick must allocate
// before anything else is done; allocated() or refused() follows.
struct Taken {
  std::vector<Piece> pieces;
  std::optional<brick::Run> fresh;
};

// Which grains of one brick are free: a data structure, without I/O and without a clock. Free runs are
// indexed by length, clean and dirty ones apart; a request costs O(log n) a piece. It gets what joins on to
// the file; whole blocks the brick has not allocated yet; the shortest run that is long enough; and only when
// there is none, and no block either, the longest runs.
//
// A request of n grains succeeds if and only if n are free, but for kPiecesMax. No block stays empty: whoever
// gives the last used grain of one back gets the block, to free it on the brick.
class GrainPool {
 public:
  // More pieces than this would be more grants than the file is worth; but not where little is left.
  static constexpr size_t kPiecesMax = 64;

  // Blocks the brick has, in use or not.
  void set_capacity(uint64_t blocks) { capacity_ = blocks; }
  uint64_t capacity() const { return capacity_; }

  // Extents have these ranges, ascending; all that is used of a block at once. What else is in the block was free
  // before the restart: not known to be clean. O(1) an extent.
  void use(std::span<const LogicalRange> extents);

  // `next_block`: the number of the first of as many fresh block addresses as blocks_needed() says.
  std::expected<Taken, Shortage> take(const GrainRequest& request, uint64_t next_block);
  // At most, of fresh addresses.
  uint64_t blocks_needed(const GrainRequest& request) const;
  // The brick has `fresh`: what of it nobody asked for is free, and clean.
  void allocated(const brick::Run& fresh);
  // The brick has not; its addresses are not used again, nor are the pieces in it.
  void refused(const brick::Run& fresh);

  // Pieces that were never reachable by anybody: back at once, as clean as they say. Blocks that became empty
  // are returned, no longer ours.
  std::vector<brick::Run> put_back(const std::vector<Piece>& pieces);
  // Part of a used range is in no file any more. Whole blocks that became empty are returned, no longer ours.
  // Other grains rest until `rested`, then wake() makes them free, not clean.
  std::vector<brick::Run> free(uint64_t logical, uint64_t length, SteadyTime rested);
  void wake(SteadyTime now);

  // For a zeroer: the longest dirty run, at most `grains` of it. zeroed() follows.
  std::optional<Piece> take_dirty(uint64_t grains);
  std::vector<brick::Run> zeroed(const Piece& piece);

  const BlockRuns& ours() const { return ours_; }
  // What a request can have now, in grains.
  uint64_t free_grains() const { return fresh_blocks() * kGrainsPerBlock + free_in_blocks_; }
  // What it can have soon, beside that.
  uint64_t waiting_grains() const { return resting_ + zeroing_ + promised_; }
  // Free or waiting, in blocks that are ours.
  uint64_t unused_in_blocks() const { return free_in_blocks_ + waiting_grains(); }

 private:
  struct Run {
    uint32_t count = 0;
    uint64_t block = 0;
    uint32_t first = 0;
    auto operator<=>(const Run&) const = default;
  };
  struct Resting {
    SteadyTime until;
    uint64_t block = 0;
    GrainRange grains;
  };
  using Runs = std::set<Run>;
  using Shared = std::map<uint64_t, BlockGrains>;

  uint64_t fresh_blocks() const { return capacity_ > ours_.count() ? capacity_ - ours_.count() : 0; }
  bool nearly_full() const { return free_grains() * 20 < capacity_ * kGrainsPerBlock; }
  // Takes the index along with what `change` does to the grains of a block in `range`.
  template <typename Change>
  void change(uint64_t block, GrainRange range, Change change);
  void index(uint64_t block, const BlockGrains& grains, GrainRange range, bool enter);
  void use_in(uint64_t block, std::span<const GrainRange> used);
  Piece take_run(uint64_t block, GrainRange range);
  std::optional<Piece> take_at(uint64_t logical, uint64_t count);
  std::optional<Piece> take_best(uint64_t count);
  Piece take_longest();
  bool split(uint64_t count, size_t pieces_max, std::vector<Piece>& pieces);
  void drop(uint64_t block);
  std::vector<brick::Run> drop_emptied(const BlockRuns& emptied);

  uint64_t capacity_ = 0;
  BlockRuns ours_;
  Shared shared_;  // those of ours that are not wholly used
  Runs clean_;     // the longest possible runs of free grains of one kind, each within a block
  Runs dirty_;
  std::deque<Resting> rest_;                 // in the order of their time
  std::map<uint64_t, GrainRange> promises_;  // by block: what will be free of a fresh one
  uint64_t free_in_blocks_ = 0;
  uint64_t resting_ = 0;
  uint64_t zeroing_ = 0;
  uint64_t promised_ = 0;
};

}  // namespace pnfsrdma::mds
