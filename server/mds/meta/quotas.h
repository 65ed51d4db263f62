// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "server/mds/meta/bounded_cache.h"
#include "server/mds/meta/inode.h"
#include "server/mds/meta/key_value.h"
#include "server/mds/meta/quota.h"
#include "server/mds/meta/quota_recount.h"
#include "server/mds/meta/quota_trees.h"
#include "server/mds/meta/snapshot_keys.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// What users, groups and trees have, and what they may have. Nothing is counted, and nothing costs anything, until
// begin(); then what is there already is counted in slices, beside all changes: those to an inode below counted_to()
// are charged at once (quota_charge.h), the others when their slice is. Limits hold once all is counted. Each inode
// counts for its owner, its group and its tree; memory that files share counts for each of them, memory that only
// snapshots have for nobody. Control loop only.
class Quotas {
 public:
  // Blocks.
  static Result<Quotas> open(KeyValueStore& store);

  static constexpr InodeId kAllCounted = kLiveInodesEnd;
  bool on() const { return counted_to_ != kNoInode; }
  bool counted() const { return counted_to_ == kAllCounted; }
  // Inodes below it are charged. kNoInode: none.
  InodeId counted_to() const { return counted_to_; }

  // Each commits what it changes, in one batch (kNamespace), and changes what is in memory with it. Errors: those of
  // commit().
  // What there is for all together. Nobody is looked at: what is above a default soft limit that is new, or lower, has
  // been since it grows the next time. EINVAL: a grace period over kGraceMax.
  struct Changes {
    // Counting begins; it is on record, and a restart goes on with it. No effect where it has begun.
    bool on = false;
    std::optional<QuotaGrace> grace;
    std::optional<QuotaLimits> user_default;
    std::optional<QuotaLimits> group_default;
  };
  Result<> change(const Changes& changes, const WallTime& now);
  Result<> begin() { return change({.on = true}, {}); }
  // EMFILE: there_may_be_more() says no. What is above a soft limit has been since `now`.
  Result<> set_limits(const QuotaId& id, const QuotaLimits& limits, const WallTime& now);
  // The default ones are his.
  Result<> remove_limits(const QuotaId& id, const WallTime& now);
  // Whether such limits are kept. None are, too: whose they are has no default ones, nor those that come later. Root
  // and trees have none in any case.
  static bool are_kept(const QuotaId& id, const QuotaLimits& limits) {
    return !limits.none() || (id.kind != QuotaKind::kTree && id.number != 0);
  }
  // What was on record of the tree has been erased with it (QuotaTrees::erase).
  void forget_tree(TreeNumber number);
  // So many have limits, and as many more are told to have none.
  static constexpr size_t kLimitsMax = 65'536;
  bool there_may_be_more(const QuotaLimits& limits) const {
    return (limits.none() ? exempt_ : limits_.size() - exempt_) < kLimitsMax;
  }
  static constexpr uint64_t kGraceMax = uint64_t{10} * 365 * 24 * 3600;

  // Their own.
  const std::map<QuotaId, QuotaLimits>& limits() const { return limits_; }
  // His own, or the default ones.
  QuotaLimits limits_of(const QuotaId& id) const;
  // None: of trees.
  QuotaLimits default_of(QuotaKind kind) const;
  bool has_default_limits(const QuotaId& id) const;
  // All that it has is counted, so that its limits hold.
  bool holds(const QuotaId& id) const;
  const QuotaGrace& grace() const { return grace_; }

  // Nothing of what was never charged. Errors: those of KeyValueStore::get.
  Result<QuotaUsage> usage(const QuotaId& id);
  // What a change of the inode charges is in memory then. Only reads.
  void bring(const Inode& inode);
  // In order, from that one on, the first `most` of them that have something. Reads as above.
  struct Entry {
    QuotaId id;
    QuotaUsage usage;
  };
  Result<std::vector<Entry>> page(const QuotaId& from, size_t most);

  // Those that an inode counts for: its owner, its group and, if it is in one, its tree.
  class Owners {
   public:
    void add(const QuotaId& id) { ids_[count_++] = id; }
    bool empty() const { return count_ == 0; }
    bool contains(const QuotaId& id) const { return std::find(begin(), end(), id) != end(); }
    const QuotaId* begin() const { return ids_.data(); }
    const QuotaId* end() const { return ids_.data() + count_; }

   private:
    std::array<QuotaId, 3> ids_;
    size_t count_ = 0;
  };
  Owners owners_of(const Inode& inode) const;

  // The same for who keeps it; nothing while nothing is counted.
  std::vector<QuotaId> counted_owners(const Inode& inode) const;

  // How many bytes more an inode's owner, group and tree may have, and who of them may have no more; UINT64_MAX: as
  // many as there are, nobody.
  struct Allowance {
    uint64_t bytes = UINT64_MAX;
    std::optional<QuotaId> of;
  };
  Result<Allowance> space_left(const Inode& inode, const WallTime& now) {
    return space_left(owners_of(inode), now);
  }
  Result<Allowance> space_left(const Owners& owners, const WallTime& now);
  // Of the one of some whose limits leave it least, how many bytes it has, and how many more it may have before it is
  // refused any, and before it is above its soft limit; UINT64_MAX: as many as there are. The first one where none has
  // a limit, nothing of nobody. Reads as above.
  struct Standing {
    uint64_t used = 0;
    uint64_t hard_left = UINT64_MAX;
    uint64_t soft_left = UINT64_MAX;
  };
  Result<Standing> standing(const Owners& owners, const WallTime& now);
  // The same of a tree alone, as the size and the rest of a file system: nullopt where it has no such limit.
  struct Room {
    uint64_t total = 0;
    uint64_t left = 0;
  };
  Result<std::optional<Room>> tree_space(const Inode& inode);
  Result<std::optional<Room>> tree_inodes(const Inode& inode);

  // Something of his has lost its last name and is still there, and not for long: who frees memory or an inode to use
  // it again is told to come again, not that he has too much. What somebody has open is waited for no longer.
  bool departs(const QuotaId& id, const WallTime& now) const;
  static constexpr int64_t kDepartureSecondsMax = 2;

  // The next inodes to be counted; only reads. count() is for the same turn. Errors: those of the store.
  struct Slice {
    std::vector<Inode> inodes;
    InodeId end = kNoInode;  // counted_to() behind it
  };
  Result<Slice> next_slice(size_t most);
  Result<> count(const Slice& slice, const WallTime& now);

  // Counts again what has been counted, in memory and beside all changes, as above: what is on record stays until
  // mend(). EBUSY: it is not all counted yet, or is being counted again.
  Result<> begin_recount();
  // It may have been given up.
  void end_recount() { recount_.reset(); }
  bool recounted() const { return recount_ && recount_->counted_to == kAllCounted; }
  InodeId recounted_to() const { return recount_ ? recount_->counted_to : kNoInode; }
  Result<Slice> next_recount_slice(size_t most);
  void recount(const Slice& slice);
  // Of the next `most` of them in order, those whose record is not what was counted. Only reads; mend() is for the same
  // turn.
  struct Wrong {
    QuotaId id;
    QuotaUsage on_record;
    QuotaRecount::Sum counted;
  };
  struct Comparison {
    std::vector<Wrong> wrong;
    std::optional<QuotaId> next;  // nullopt: all have been compared
  };
  Result<Comparison> compare(const QuotaId& from, size_t most);
  Result<> mend(const std::vector<Wrong>& wrong, const WallTime& now);

  QuotaTrees& trees() { return trees_; }
  const QuotaTrees& trees() const { return trees_; }

 private:
  friend class QuotaCharge;
  explicit Quotas(KeyValueStore& store, QuotaTrees trees);
  Result<> read_limits();
  Result<> read_default(QuotaKind kind);
  static void put_default(Batch& batch, QuotaKind kind, QuotaDefault& changed, const QuotaLimits& limits,
                          const WallTime& now);
  Result<> set(const QuotaId& id, const std::optional<QuotaLimits>& limits, const WallTime& now);
  void put_limits(const QuotaId& id, const QuotaLimits& limits);
  void erase_limits(const QuotaId& id);
  // As of default limits that may be younger than the record.
  QuotaUsage current(const QuotaId& id, QuotaUsage usage) const;
  uint64_t space_left(const QuotaId& id, const QuotaUsage& usage, const WallTime& now) const;
  Result<Slice> slice_from(InodeId from, size_t most);
  struct Departure {
    uint64_t files = 0;
    int64_t newest = 0;  // seconds since 1970
  };
  void depart(const Inode& inode, const WallTime& now);
  void gone(const Inode& inode);
  Result<std::optional<Room>> room(const Inode& inode, QuotaLimit QuotaLimits::* limit,
                                   QuotaUse QuotaUsage::* use);

  KeyValueStore* store_;
  QuotaTrees trees_;
  InodeId counted_to_ = kNoInode;
  QuotaGrace grace_;
  std::map<QuotaId, QuotaLimits> limits_;
  size_t exempt_ = 0;  // of limits_, those that are none
  QuotaDefault user_default_;
  QuotaDefault group_default_;
  std::optional<QuotaRecount> recount_;
  BoundedCache<QuotaId, QuotaUsage, QuotaHash> usage_;            // as it is on record
  std::unordered_map<QuotaId, Departure, QuotaHash> departures_;  // of this run
};

// The record of what it has; none where it has nothing.
void put_quota(Batch& batch, const QuotaId& id, const QuotaUsage& usage);

}  // namespace pnfsrdma::mds
