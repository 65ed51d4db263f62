// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/namespace_change.h"

#include <sys/stat.h>

#include <algorithm>

#include "server/mds/meta/format_version.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "shared/base/check.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

// Inode numbers are reserved in the store this many at a time; a restart skips what is left of them.
constexpr uint64_t kInodesPerReservation = 1024;
constexpr uint32_t kPermissionBits = 0777;

// What an inode has beside itself.
void erase_rows(Batch& batch, const Inode& inode) {
  if (inode.flags & kInodeHasXattrs) batch.erase(number_key(kXattrTag, inode.id));
  if (inode.flags & kInodeHasAccessAcl) batch.erase(acl_key(inode.id, AclKind::kAccess));
  if (inode.flags & kInodeHasDefaultAcl) batch.erase(acl_key(inode.id, AclKind::kDefault));
}

}  // namespace

Inode& Namespace::Change::edit(const InodePointer& inode) {
  if (Edited* present = find(inode->id)) return present->inode;
  return edited_.emplace_back(Edited{*inode, inode, false, nullptr}).inode;
}

Inode& Namespace::Change::add(const NewInode& what) {
  // Never the same number twice, whatever becomes of this change.
  const InodeId id = names_.next_inode_++;
  if (id >= names_.reserved_inodes_) {
    reserved_inodes_ = id + kInodesPerReservation;
    put_value(batch_, meta_key("next-inode"), StoredNumber{reserved_inodes_});
  }
  Inode& inode = edited_.emplace_back().inode;
  inode.id = id;
  inode.generation = names_.boot_count_;
  inode.type = what.type;
  inode.mode = what.mode & kModeMask;
  inode.uid = what.uid;
  inode.gid = what.gid;
  inode.created = inode.ctime = now_;
  inode.mtime = what.mtime.value_or(now_);
  inode.atime = what.atime.value_or(now_);
  inode.change = names_.next_change(inode);
  inode.symlink_target = what.symlink_target;
  if (what.type == FileType::kRegular) inode.size = what.size;
  if (what.type == FileType::kSymlink) inode.size = what.symlink_target.size();
  inode.device_major = what.device_major;
  inode.device_minor = what.device_minor;
  if (inode.is_directory()) inode.next_cookie = kFirstCookie;
  if (what.how == CreateMode::kExclusive) {
    inode.exclusive_verifier = what.verifier;
    inode.flags |= kInodeHasVerifier;
  }
  if (!what.access_acl.empty()) set_access_acl(inode, what.access_acl);
  if (!what.default_acl.empty()) set_default_acl(inode, what.default_acl);
  return inode;
}

void Namespace::Change::erase(InodeId id) {
  Edited* edited = find(id);
  CHECK(edited != nullptr);
  edited->erased = true;
}

void Namespace::Change::set_access_acl(Inode& inode, const PosixAcl& acl) {
  inode.mode = (inode.mode & ~kPermissionBits) | acl.mode_bits();
  put_acl(inode, AclKind::kAccess, kInodeHasAccessAcl, acl.beyond_mode());
}

void Namespace::Change::set_default_acl(Inode& inode, const PosixAcl& acl) {
  put_acl(inode, AclKind::kDefault, kInodeHasDefaultAcl, acl.entries());
}

void Namespace::Change::put_acl(Inode& inode, AclKind kind, uint32_t flag, const AclEntries& entries) {
  const bool had = (inode.flags & flag) != 0;
  if (entries.empty()) {
    inode.flags &= ~flag;
    if (had) batch_.erase(acl_key(inode.id, kind));
  } else {
    inode.flags |= flag;
    raise_format_version(batch_, names_.shared_format());
    put_value(batch_, acl_key(inode.id, kind), StoredAcl{{entries.begin(), entries.end()}});
  }
}

void Namespace::Change::touch(Inode& inode) const {
  inode.ctime = now_;
  inode.change = names_.next_change(inode);
}

void Namespace::Change::touch_data(Inode& inode) const {
  inode.mtime = now_;
  touch(inode);
}

void Namespace::Change::touch_with_data(Inode& inode) const {
  inode.ctime = std::max(inode.ctime, inode.mtime);
  inode.change = names_.next_change(inode);
}

void Namespace::Change::enter(Inode& directory, std::string_view name, Inode& child,
                              std::optional<uint64_t> cookie) {
  const NameEntry entry{child.id, child.type, cookie ? *cookie : directory.next_cookie++};
  put_value(batch_, name_key(directory.id, name), entry);
  put_value(batch_, number_key(kCookieTag, directory.id, entry.cookie),
            StoredCookie{std::string(name), child.id, child.type});
  entries_.emplace_back(NameKey{directory.id, std::string(name)}, entry);
  ++directory.size;
  touch_data(directory);
  if (!child.is_directory()) return;
  ++directory.nlink;  // the child's ".."
  child.parent = directory.id;
}

void Namespace::Change::take_out(Inode& directory, std::string_view name, const NameEntry& entry,
                                 Inode& child) {
  batch_.erase(name_key(directory.id, name));
  batch_.erase(number_key(kCookieTag, directory.id, entry.cookie));
  entries_.emplace_back(NameKey{directory.id, std::string(name)}, std::nullopt);
  freed_cookies_.emplace_back(directory.id, entry.cookie);
  --directory.size;
  touch_data(directory);
  if (child.is_directory()) --directory.nlink;
}

bool Namespace::Change::drop_link(Inode& child) {
  touch(child);
  if (child.is_directory()) {
    child.nlink = 0;
    erase(child.id);
    return false;
  }
  if (--child.nlink > 0) return false;
  if (child.is_regular() && (child.space_used > 0 || names_.in_use_(child.id))) {
    child.flags |= kInodeOrphan;
    batch_.put(number_key(kOrphanTag, child.id), {});
    return true;
  }
  if (child.is_regular()) batch_.erase(number_key(kTailTag, child.id));
  erase(child.id);
  return false;
}

// The count of who has what is part of the batch; a tree goes with its directory.
Outcome<> Namespace::Change::charge(QuotaCharge& charge) {
  const Quotas& quotas = names_.quotas_;
  for (const Edited& edited : edited_) {
    if (edited.before || !edited.erased)
      charge.add(edited.before.get(), edited.erased ? nullptr : &edited.inode);
  }
  if (const auto put = charge.put(batch_, now_); !put) return std::unexpected(status_of(put.error()));
  for (const Edited& edited : edited_) {
    if (edited.erased && quotas.trees().is_root(edited.inode))
      quotas.trees().erase(batch_, edited.inode.tree);
  }
  return {};
}

void Namespace::Change::update_quotas(QuotaCharge& charge) {
  charge.keep(now_);
  for (const Edited& edited : edited_) {
    if (edited.erased && names_.quotas_.trees().is_root(edited.inode))
      names_.quotas_.forget_tree(edited.inode.tree);
  }
}

Outcome<> Namespace::Change::commit(CommitKind kind) {
  QuotaCharge charge(names_.quotas_);
  TRY(this->charge(charge));
  for (const Edited& edited : edited_) {
    const std::string key = number_key(kInodeTag, edited.inode.id);
    if (edited.erased) {
      batch_.erase(key);
      erase_rows(batch_, edited.inode);
    } else {
      put_value(batch_, key, edited.inode);
    }
  }
  const auto sequence = names_.store_.commit(batch_, kind);
  if (!sequence) {
    if (sequence.error().number() != kNotAtHand)
      log_warning("meta", "commit-refused {}", sequence.error().to_string());
    return std::unexpected(status_of(sequence.error()));
  }
  update_quotas(charge);
  update_caches();
  return {};
}

InodePointer Namespace::Change::result(InodeId id) const {
  for (const Edited& edited : edited_) {
    if (edited.inode.id == id) return edited.snapshot;
  }
  return nullptr;
}

Namespace::Change::Edited* Namespace::Change::find(InodeId id) {
  for (Edited& edited : edited_) {
    if (edited.inode.id == id) return &edited;
  }
  return nullptr;
}

// A name that takes the place of another may be entered where one has just been taken out: those last.
void Namespace::Change::update_first_cookies() {
  for (const auto& [directory, cookie] : freed_cookies_) {
    uint64_t* first = names_.first_cookies_.find(directory);
    if (first != nullptr && *first == cookie) ++*first;
  }
  for (const auto& [key, entry] : entries_) {
    uint64_t* first = entry ? names_.first_cookies_.find(key.directory) : nullptr;
    if (first != nullptr) *first = std::min(*first, entry->cookie);
  }
}

void Namespace::Change::update_caches() {
  update_first_cookies();
  if (reserved_inodes_ > 0) names_.reserved_inodes_ = reserved_inodes_;
  for (Edited& edited : edited_) {
    edited.snapshot = std::make_shared<const Inode>(edited.inode);
    if (edited.erased) {
      names_.inodes_.erase(edited.inode.id);
    } else {
      names_.inodes_.put(edited.inode.id, edited.snapshot);
    }
  }
  for (auto& [key, entry] : entries_) {
    if (entry) {
      names_.last_names_.put(entry->inode, key);
      names_.names_.put(std::move(key), *entry);
    } else {
      names_.names_.erase(static_cast<NameView>(key));
    }
  }
}

}  // namespace pnfsrdma::mds
