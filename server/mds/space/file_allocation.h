// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "server/mds/space/file_space.h"
#include "server/mds/space/unnaming.h"

// What FileSpace is giving to a file. For its own sources.
namespace pnfsrdma::mds {

// A piece of memory for a part of a hole.
struct FileSpace::Placed {
  uint64_t file_offset = 0;
  Piece piece;
  std::optional<uint64_t> shared;  // what is to be copied there
  bool touched = false;            // the copy has begun, and may still go on when it has failed

  uint64_t end() const { return file_offset + piece.length; }
};

struct FileSpace::Placing {
  InodePointer inode;
  ExtentChange extents;
  Unnaming unnaming;
  uint64_t end = 0;
};

// What is to get memory: a hole, or a part of the file whose memory others have too.
struct FileSpace::Hole {
  ByteRange range;
  // Where the memory of the bytes in front of it ends, so that it can go on there.
  std::optional<uint64_t> in_front;
  std::optional<uint64_t> shared;  // where the memory of its begin is

  std::optional<uint64_t> shared_at(uint64_t offset) const {
    return shared ? std::optional(*shared + (offset - range.begin)) : std::nullopt;
  }
};

struct FileSpace::Allocation {
  InodeId inode = kNoInode;
  AllocationPlan plan;
  Change change;
  Done done;
  ByteRange range;                 // what is tried now: wished, or needed
  std::deque<BrickNumber> places;  // the first one is tried now
  bool unshares = false;           // no holes: shared memory is copied
  bool shared = false;             // no brick alone has enough: each gives what it has
  std::vector<Hole> holes;         // still to place, the last one first
  std::vector<Placed> placed;
  bool scattered = false;     // a brick has enough, in too many pieces
  Quotas::Allowance allowed;  // what quotas leave, and who is short: when it was last looked
  // Once nothing is free: the files still to be asked for what is ahead of them, and until when.
  std::optional<SteadyTime> patience;
  size_t files_left = 0;
  uint64_t missing = 0;  // bytes, when the holes were last looked for
};

}  // namespace pnfsrdma::mds
