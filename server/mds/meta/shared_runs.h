// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/mds/meta/grain_pool.h"
#include "server/mds/meta/key_value.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// Memory that several extents name: `names` of them, two at least. What one extent names has no record.
struct SharedRun {
  uint64_t logical = 0;
  uint64_t length = 0;
  uint64_t names = 0;

  uint64_t end() const { return logical + length; }
  bool operator==(const SharedRun&) const = default;
};

// Which memory is shared. Only inodes with kInodeShares have any, so who knows the inode need not ask. Nobody writes
// to shared memory: who wants to gets a copy first (FileSpace::unshare). Reads come from the store; changes are made by
// SharedChange. Control loop only.
class SharedRuns {
 public:
  explicit SharedRuns(KeyValueStore& store) : store_(store) {}

  // Those that touch the memory, whole, in order.
  Result<std::vector<SharedRun>> overlapping(const LogicalRange& memory, size_t most = SIZE_MAX);
  // The parts of the memory that are shared, in order.
  Result<std::vector<LogicalRange>> within(const LogicalRange& memory);

 private:
  KeyValueStore& store_;
};

// Changes to what is shared, made in memory one after the other, then written into the batch that changes the extents
// likewise. Valid until another change of shared memory is committed: make, use and commit it in one turn.
class SharedChange {
 public:
  explicit SharedChange(KeyValueStore& store) : runs_(store) {}

  // One more extent names the memory; one does already.
  Result<> add(const LogicalRange& memory);
  // The same for ranges in order that do not overlap, as the first of all changes: of many, the records between the
  // first and the last are read once, if there are not far more of them.
  Result<> add_all(const std::vector<LogicalRange>& memory);
  // One extent less does. Returns what no extent names any more: to be freed when the batch is synced.
  Result<std::vector<LogicalRange>> drop(const LogicalRange& memory);
  void write_to(Batch& batch) const;

 private:
  Result<std::vector<SharedRun>> change(const LogicalRange& memory, int64_t by);
  Result<std::vector<SharedRun>> touching(const LogicalRange& memory);
  Result<std::vector<SharedRun>> touching_at_hand(const LogicalRange& memory) const;
  void replace(const std::vector<SharedRun>& before, std::vector<SharedRun> after);

  SharedRuns runs_;
  std::optional<std::vector<SharedRun>> at_hand_;         // by add_all(): all of the records that it may need
  std::map<uint64_t, std::optional<SharedRun>> pending_;  // by end of run, as the keys are; nullopt: erased
};

}  // namespace pnfsrdma::mds
