// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/quota_charge.h"

namespace pnfsrdma::mds {

// One atomic operation on the tree while it is put together: inodes are edited as copies, and nothing, cache
// included, is different until commit() has succeeded. Lives within one call of a Namespace method.
class Namespace::Change {
 public:
  explicit Change(Namespace& names) : names_(names), now_(names.clock_.wall_now()) {}

  const WallTime& now() const { return now_; }

  // The inode's state in this change, to be edited: the same object for the same inode.
  Inode& edit(const InodePointer& inode);
  // A new inode with an id of its own; everything but id, generation, change and times is the caller's.
  Inode& add(const NewInode& what);
  void erase(InodeId id);
  // Rows and flags; with an access ACL, the lowest bits of the mode as well.
  void set_access_acl(Inode& inode, const PosixAcl& acl);
  void set_default_acl(Inode& inode, const PosixAcl& acl);

  // ctime and change; mtime as well.
  void touch(Inode& inode) const;
  void touch_data(Inode& inode) const;
  // It was changed when its data was.
  void touch_with_data(Inode& inode) const;

  // Enters and takes out names: directory size, cookies, times; and for directories link counts and parents.
  // `cookie`: the place in the listing, if not behind all others.
  void enter(Inode& directory, std::string_view name, Inode& child,
             std::optional<uint64_t> cookie = std::nullopt);
  void take_out(Inode& directory, std::string_view name, const NameEntry& entry, Inode& child);
  // One name of `child` is gone: a directory goes, a file when that was the last. True if it became an
  // orphan.
  bool drop_link(Inode& child);

  Batch& batch() { return batch_; }
  Outcome<> commit(CommitKind kind = CommitKind::kNamespace);
  // After commit(): the new snapshot.
  InodePointer result(InodeId id) const;

 private:
  struct Edited {
    Inode inode;
    InodePointer before;  // nullptr: it is new
    bool erased = false;
    InodePointer snapshot;
  };
  Edited* find(InodeId id);
  void put_acl(Inode& inode, AclKind kind, uint32_t flag, const AclEntries& entries);
  Outcome<> charge(QuotaCharge& charge);
  void update_caches();
  void update_quotas(QuotaCharge& charge);
  void update_first_cookies();

  Namespace& names_;
  const WallTime now_;
  Batch batch_;
  std::deque<Edited> edited_;  // at most four; addresses stay
  std::vector<std::pair<NameKey, std::optional<NameEntry>>> entries_;
  std::vector<std::pair<InodeId, uint64_t>> freed_cookies_;  // by directory
  InodeId reserved_inodes_ = 0;
};

}  // namespace pnfsrdma::mds
