// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "server/mds/meta/grain_pool.h"
#include "server/mds/meta/key_value.h"
#include "server/mds/meta/snapshots.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// Memory that no file has any more, but a snapshot: those behind `born` up to `died`.
struct DeadRun {
  LogicalRange memory;
  SnapshotNumber born = 0;
  SnapshotNumber died = 0;

  bool operator==(const DeadRun&) const = default;
};

// What only snapshots have. It is in use for the brick, and nobody writes there. Control loop only.
class DeadMemory {
 public:
  explicit DeadMemory(KeyValueStore& store) : store_(store) {}

  // Part of the batch that takes the memory out of the last file, or gives it back.
  static void put(Batch& batch, const DeadRun& run);
  static void erase(Batch& batch, const DeadRun& run);

  // Behind `from`, by time of death, then by address; the first `most`.
  struct Place {
    SnapshotNumber died = 0;
    uint64_t end = 0;  // those that end up to here have been visited
  };
  Result<std::vector<DeadRun>> page(const Place& from, size_t most = SIZE_MAX);
  // Of all of it. Reads all records.
  Result<uint64_t> bytes();

 private:
  KeyValueStore& store_;
};

}  // namespace pnfsrdma::mds
