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

  // Those that touch the memory, whole, in order; the first `most` of them.
  Result<std::vector<SharedRun>> overlapping(const LogicalRange& memory, size_t most = SIZE_MAX);
  // The parts of the memory that are shared, in order. Where there are very many records, all behind the first
  // kRecordsAtOnce counts as shared.
  Result<std::vector<LogicalRange>> within(const LogicalRange& memory);
  static constexpr size_t kRecordsAtOnce = 4096;

 private:
  KeyValueStore& store_;
};

// Changes to what is shared, made in memory one after the other, then written into the batch that changes the extents
// likewise. Valid until another change of shared memory is committed: make, use and commit it in one turn.
class SharedChange {
 public:
  explicit SharedChange(KeyValueStore& store) : runs_(store) {}

  // One more extent names the memory; one does already. EFBIG: its records are too many for a turn.
  Result<> add(const LogicalRange& memory);
  // The same for several. Ranges that overlap count as often as they are there.
  Result<> add_all(const std::vector<LogicalRange>& memory);
  // Of many ranges the records between the first and the last are read once, if there are not far more of them; before
  // any change.
  Result<> prepare(std::vector<LogicalRange> memory);
  // One extent less does. EFBIG. Returns what no extent names any more: to be freed when the batch is synced.
  Result<std::vector<LogicalRange>> drop(const LogicalRange& memory);
  void write_to(Batch& batch) const;

 private:
  Result<std::vector<SharedRun>> change(const LogicalRange& memory, int64_t by);
  Result<std::vector<SharedRun>> touching(const LogicalRange& memory);
  std::vector<SharedRun> at_hand(const LogicalRange& memory) const;
  void replace(const std::vector<SharedRun>& before, std::vector<SharedRun> after);

  SharedRuns runs_;
  // All of the records that touch this memory.
  LogicalRange known_;
  std::vector<SharedRun> at_hand_;
  size_t looked_at_ = 0;                                  // records
  std::map<uint64_t, std::optional<SharedRun>> pending_;  // by end of run, as the keys are; nullopt: erased
};

}  // namespace pnfsrdma::mds
