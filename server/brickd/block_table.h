// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/brickd/format.h"
#include "server/brickd/free_runs.h"
#include "shared/base/bytes.h"
#include "shared/base/clock.h"
#include "shared/brick/protocol.h"
#include "shared/pmem/persistence.h"

namespace pnfsrdma::brick {

// What one entry of the medium says. `half` is the record that counts, none when neither is whole.
struct EntryReading {
  std::optional<unsigned> half;
  format::Record record;
  bool torn = false;  // the other half is neither whole nor empty: an update that never finished; harmless
};
EntryReading read_entry(const format::Entry& entry, uint64_t block, const std::array<std::byte, 16>& uuid);

// A piece of physically contiguous bytes: where the MDS has it and where it lies behind the pool's data
// offset.
struct Piece {
  uint64_t logical = 0;
  uint64_t physical = 0;
  uint64_t length = 0;
};

struct BlockCounts {
  uint64_t clean = 0;
  uint64_t dirty = 0;  // free, resting or to be zeroed
  uint64_t allocated = 0;
  uint64_t parked = 0;
  uint64_t damaged = 0;  // out of service: entry unreadable, or two blocks claim one address
  uint64_t free() const { return clean + dirty; }
};

// The state of every block: in memory for decisions, on the medium one line each. Knows addresses and states;
// knows nothing of clients. Part of the Pool; control loop only.
//
// A change decides, stores the new entries and remembers their lines: take_touched() must be flushed before
// the change is answered and before the next one begins (Committer).
class BlockTable {
 public:
  struct Geometry {
    std::array<std::byte, 16> uuid{};
    uint64_t block_size = kBlockSize;
    uint64_t block_count = 0;
  };

  // Writes and flushes entries for a new pool.
  static Result<> write_new(MutableByteSpan table, pmem::Persistence& persistence, const Geometry& geometry,
                            format::State state);

  // Scans the table. Free blocks that are dirty rest again from `now` on.
  BlockTable(MutableByteSpan table, pmem::Persistence& persistence, const Geometry& geometry, SteadyTime now);

  // All or nothing, each: kInvalid for bad addresses or counts, and
  std::expected<std::vector<Run>, Status> alloc(
      const AllocArguments& arguments);                       // kExists, kNoSpace, kTryLater
  Status free(const std::vector<Run>& runs, SteadyTime now);  // kNotFound, kBusy
  Status unmap(const std::vector<Run>& runs);                 // kNotFound, kBusy
  Status map(const MapArguments& arguments);                  // kNotFound, kExists
  // Free blocks and damaged ones from `first` on become dirty.
  Status erase(uint64_t first, uint64_t count, SteadyTime now);  // kBusy
  std::vector<ByteSpan> take_touched();

  // Blocks that were allocated by a call with this epoch (AllocArguments), in order of their addresses. Looks at all.
  std::vector<Run> allocated_by(uint64_t epoch) const;
  // The lowest address from which on so many addresses of blocks are free. No block is near the end of the addresses.
  uint64_t free_address(uint64_t count) const;
  // Behind the highest address of a block.
  uint64_t end_address() const { return index_.empty() ? 0 : index_.rbegin()->first + geometry_.block_size; }

  // Every byte of the range lies in an allocated block: the pieces in order. kInvalid, kNotFound.
  std::expected<std::vector<Piece>, Status> resolve(uint64_t logical, uint64_t length) const;
  ListResult list(uint64_t from, uint32_t limit) const;
  SurveyResult survey(uint64_t from, uint32_t limit) const;
  const BlockCounts& counts() const { return counts_; }
  uint64_t block_size() const { return geometry_.block_size; }

  // While a block is pinned (exposed, or under a running copy), free and unmap answer kBusy.
  void pin(const Piece& piece);
  void unpin(const Piece& piece);

  // A free block that has rested and is to be zeroed now; it is the caller's until mark_clean() or give_up().
  std::optional<uint64_t> next_to_zero(SteadyTime now);
  // When next_to_zero() will have something; none if nothing rests.
  std::optional<SteadyTime> next_ripe() const;
  // The zeros are durable.
  void mark_clean(uint64_t block);
  // They are not: the block rests once more.
  void give_up(uint64_t block, SteadyTime now);

 private:
  struct Block {
    uint64_t logical = 0;
    uint64_t generation = 0;
    uint64_t owner = 0;
    uint32_t pins = 0;
    uint8_t half = 0;
    std::optional<format::State> state;  // none: damaged
  };
  struct Resting {
    uint64_t block = 0;
    SteadyTime ripe;
  };
  using Index = std::map<uint64_t, uint64_t>;  // logical address -> physical block

  void scan(SteadyTime now);
  void adopt(uint64_t block, SteadyTime now);
  uint64_t* count_of(std::optional<format::State> state);
  void store(uint64_t block, format::State state, uint64_t logical, uint64_t owner);
  bool valid(const Run& run) const;
  Status check_runs(const std::vector<Run>& runs, bool parked_too) const;
  bool any_taken(uint64_t logical, uint64_t count) const;
  Status availability(uint64_t count) const;
  std::vector<uint64_t> blocks_of(const Run& run) const;

  MutableByteSpan table_;
  pmem::Persistence& persistence_;
  Geometry geometry_;
  std::vector<Block> blocks_;
  Index index_;
  FreeRuns clean_;
  std::deque<Resting> resting_;
  BlockCounts counts_;
  std::vector<ByteSpan> touched_;
};

}  // namespace pnfsrdma::brick
