// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "server/mds/meta/quotas.h"

namespace pnfsrdma::mds {

// What one batch changes of the counts of users, groups and trees: part of it. Costs nothing where nothing is counted,
// or where neither owners nor memory change; else a record of 53 bytes for each owner whose count changes, which is
// mostly in memory. Lives within one turn.
class QuotaCharge {
 public:
  explicit QuotaCharge(Quotas& quotas) : quotas_(quotas) {}

  // nullptr: it is new, or goes.
  void add(const Inode* before, const Inode* after);
  // Of an inode that was not counted yet.
  void count(const Inode& inode);

  // EDQUOT: somebody would have more than he may; EAGAIN: and some of what he has is on its way out; those of
  // KeyValueStore::get. Nothing has changed then.
  Result<> put(Batch& batch, const WallTime& now);
  // The batch is committed.
  void keep(const WallTime& now);

 private:
  struct Delta {
    QuotaId id;
    int64_t space = 0;
    int64_t inodes = 0;
    // Of that, what is counted again already (Quotas::begin_recount).
    int64_t space_again = 0;
    int64_t inodes_again = 0;
    QuotaUsage usage;  // once put

    bool none() const { return space == 0 && inodes == 0 && space_again == 0 && inodes_again == 0; }
  };
  void change(const Inode& inode, int64_t sign);
  Delta& delta_of(const QuotaId& id);
  Result<QuotaUsage> present(const Delta& delta);
  Result<> check(const Delta& delta, const QuotaLimits& limits, const WallTime& now) const;

  Quotas& quotas_;
  std::vector<Delta> deltas_;  // of a change of names a few
  // What loses its last name, and what goes for good: one of each at most; both are the file that another owner gets
  // when it has none any more.
  const Inode* orphaned_ = nullptr;
  const Inode* destroyed_ = nullptr;
  bool counts_ = false;  // for the first time
};

}  // namespace pnfsrdma::mds
