// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "server/mds/space/file_space.h"

// For FileSpace's own sources.
namespace pnfsrdma::mds {

// What becomes of memory that extents stop to name.
struct FileSpace::Unnaming {
  SharedChange shares;
  std::vector<LogicalRange> free;  // nobody has it any more: to be freed when the batch is synced
  std::vector<DeadRun> dead;       // a snapshot has it

  void write_to(Batch& batch) const;
  uint64_t dead_bytes() const;
};

}  // namespace pnfsrdma::mds
