// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
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

// What only snapshots have. It is in use for the brick; nobody writes there. No two runs overlap. Control loop only.
class DeadMemory {
 public:
  explicit DeadMemory(KeyValueStore& store) : store_(store) {}

  // Part of the batch that takes the memory out of the last file, or gives it back.
  static void put(Batch& batch, const DeadRun& run);
  static void erase(Batch& batch, const DeadRun& run);

  // By address, those that end behind `from`; the first `most`.
  Result<std::vector<DeadRun>> page(uint64_t from, size_t most = SIZE_MAX);
  // Those that touch the memory, whole, in order; the first `most` of them.
  Result<std::vector<DeadRun>> overlapping(const LogicalRange& memory, size_t most = SIZE_MAX);
  // Of all of it. Reads all records.
  Result<uint64_t> bytes();

 private:
  KeyValueStore& store_;
};

// Memory of snapshots that becomes a file's again: changes made in memory one after the other, then written into the
// batch that gives it to the file. Valid until another change of dead memory is committed: make, use and commit it in
// one turn.
class Revival {
 public:
  explicit Revival(KeyValueStore& store) : dead_(store) {}

  // Records that all of it may read: they are read in one turn of the loop.
  static constexpr size_t kRecordsMax = 32'768;

  // Of many ranges the records between the first and the last are read once, if there are not far more of them; before
  // any change.
  Result<> prepare(const std::vector<LogicalRange>& memory);
  // An extent is to name the memory, which a snapshot has that is there. What is dead of it is the file's alone by
  // that; returned are the other parts, in order: they have a name already. EFBIG: in too many pieces.
  Result<std::vector<LogicalRange>> take(const LogicalRange& memory);
  // Bytes that are not only snapshots' any more.
  uint64_t bytes() const { return bytes_; }
  void write_to(Batch& batch) const;

 private:
  Result<std::vector<DeadRun>> overlapping(const LogicalRange& memory);
  void cut_out(const DeadRun& run, const LogicalRange& part);

  DeadMemory dead_;
  uint64_t bytes_ = 0;
  size_t looked_at_ = 0;
  // All of the records that touch this memory.
  LogicalRange known_;
  std::vector<DeadRun> at_hand_;
  std::map<uint64_t, std::optional<DeadRun>> pending_;  // by end of run, as the keys are; nullopt: erased
};

}  // namespace pnfsrdma::mds
