// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "server/mds/meta/brick_records.h"
#include "server/mds/meta/inode.h"

// On which brick a file gets memory. Pure functions.
namespace pnfsrdma::mds {

// A brick that is ready and takes data.
struct Candidate {
  BrickNumber brick = kNoBrick;
  uint64_t free_bytes = 0;
};

// The bricks in the order in which they are tried. A file stays on `home` as long as that has room. The first
// one for a file without data is drawn by its inode number, with chances as free space has it: files spread
// over all bricks, and an emptier one catches up. The rest follow by free space.
std::vector<BrickNumber> order_of(std::vector<Candidate> candidates, InodeId inode, BrickNumber home);

}  // namespace pnfsrdma::mds
