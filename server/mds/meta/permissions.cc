// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/permissions.h"

#include <sys/stat.h>

#include <algorithm>

namespace pnfsrdma::mds {
namespace {

using nfs4::PosixAceTag;
using nfs4::Status;

constexpr uint32_t kAnyExecute = S_IXUSR | S_IXGRP | S_IXOTH;

uint32_t rights_by_mode(const Credentials& who, const Inode& inode) {
  if (who.is_root()) {
    const bool execute = inode.is_directory() || (inode.mode & kAnyExecute) != 0;
    return kMayRead | kMayWrite | (execute ? kMayExecute : 0);
  }
  // The first class that fits decides, even if a later one would grant more.
  if (who.uid == inode.uid) return inode.mode >> 6 & 7;
  if (who.in_group(inode.gid)) return inode.mode >> 3 & 7;
  return inode.mode & 7;
}

// What is granted on one inode, once what decides about it has been read.
class Rights {
 public:
  static std::expected<Rights, Status> of(const Requester& asks, const Inode& inode) {
    Rights rights(asks.who, inode);
    // To the owner, as to root, the ACL says no more than the mode. A mask that grants nothing: as Linux has it, which
    // the kernels of mounts decide by, the mode does.
    const bool mask_grants = (inode.mode & S_IRWXG) != 0;
    if ((inode.flags & kInodeHasAccessAcl) == 0 || asks.owns(inode) || !mask_grants) return rights;
    auto acl = asks.acls.access_acl(inode);
    if (!acl) return std::unexpected(acl.error());
    rights.acl_ = *std::move(acl);
    return rights;
  }

  bool grant(uint32_t wanted) const {
    if (!acl_.empty()) return grants(acl_, who_, inode_.uid, inode_.gid, wanted);
    return mode_grants(who_, inode_, wanted);
  }

 private:
  Rights(const Credentials& who, const Inode& inode) : who_(who), inode_(inode) {}

  const Credentials& who_;
  const Inode& inode_;
  PosixAcl acl_;  // none: the mode decides
};

// xattr(7): in a sticky directory only its owner.
bool may_set_xattrs(const Requester& who, const Inode& inode) {
  return !inode.is_directory() || (inode.mode & S_ISVTX) == 0 || who.owns(inode);
}

// chmod(2): only the owner; setgid on a file of a group one is not in is dropped silently.
Status check_mode(const Requester& who, const Inode& inode, uint32_t group, uint32_t& mode) {
  if (!who.owns(inode)) return Status::kPerm;
  mode &= kModeMask;
  if (!who.is_root() && !inode.is_directory() && !who.who.in_group(group)) mode &= ~uint32_t{S_ISGID};
  return Status::kOk;
}

// As a mode, which an access ACL is; it takes setgid from a directory as well (as Linux has it).
Status check_acl(const Requester& who, const Inode& inode, const AttributeWish& wish,
                 std::optional<uint32_t>& mode) {
  if (!who.owns(inode)) return Status::kPerm;
  const uint32_t plain = mode.value_or(inode.mode);
  if (wish.access_acl && !who.is_root() && !who.who.in_group(wish.gid.value_or(inode.gid)) &&
      (plain & S_ISGID) != 0)
    mode = plain & ~uint32_t{S_ISGID};
  return Status::kOk;
}

// chown(2), restricted: root gives away; the owner may move the file to a group of his.
Status check_owner(const Requester& who, const Inode& inode, const AttributeWish& wish) {
  if (who.is_root()) return Status::kOk;
  const bool gives_away = wish.uid && *wish.uid != inode.uid;
  const bool other_group = wish.gid && *wish.gid != inode.gid && !who.who.in_group(*wish.gid);
  return who.who.uid != inode.uid || gives_away || other_group ? Status::kPerm : Status::kOk;
}

Status check_times(const Requester& who, const Inode& inode, const AttributeWish& wish) {
  if (who.owns(inode)) return Status::kOk;
  if (wish.times_to_value) return Status::kPerm;
  return wish.times_to_now ? check_access(who, inode, kMayWrite) : Status::kOk;
}

}  // namespace

bool Credentials::in_group(uint32_t group) const {
  return gid == group || std::ranges::find(groups, group) != groups.end();
}

bool grants(const PosixAcl& acl, const Credentials& who, uint32_t owner, uint32_t group, uint32_t wanted) {
  uint32_t mask = kMayRead | kMayWrite | kMayExecute;
  for (const AclEntry& entry : acl.entries()) {
    if (entry.tag == PosixAceTag::kMask) mask = entry.permissions;
  }
  const auto has_all = [&](uint32_t permissions) { return (permissions & wanted) == wanted; };
  bool is_member = false;
  // In their order those that decide come first.
  for (const AclEntry& entry : acl.entries()) {
    switch (entry.tag) {
      case PosixAceTag::kUserObject:
        if (who.uid == owner) return has_all(entry.permissions);
        break;
      case PosixAceTag::kUser:
        if (who.uid == entry.id) return has_all(entry.permissions & mask);
        break;
      case PosixAceTag::kGroupObject:
      case PosixAceTag::kGroup:
        if (!who.in_group(entry.tag == PosixAceTag::kGroup ? entry.id : group)) break;
        if (has_all(entry.permissions & mask)) return true;
        is_member = true;
        break;
      case PosixAceTag::kMask:
        break;
      case PosixAceTag::kOther:
        return !is_member && has_all(entry.permissions);
    }
  }
  return false;
}

bool mode_grants(const Credentials& who, const Inode& inode, uint32_t wanted) {
  return (rights_by_mode(who, inode) & wanted) == wanted;
}

Status check_access(const Requester& who, const Inode& inode, uint32_t wanted) {
  const auto rights = Rights::of(who, inode);
  if (!rights) return rights.error();
  return rights->grant(wanted) ? Status::kOk : Status::kAccess;
}

std::expected<AccessAnswer, Status> access_mask(const Requester& who, const Inode& inode, uint32_t asked) {
  const auto rights = Rights::of(who, inode);
  if (!rights) return std::unexpected(rights.error());
  AccessAnswer answer;
  uint32_t granted = rights->grant(kMayRead) ? kAccessRead : 0;
  if (inode.is_directory()) {
    answer.supported = asked & (kAccessRead | kAccessLookup | kAccessModify | kAccessExtend | kAccessDelete);
    if (rights->grant(kMayExecute)) granted |= kAccessLookup;
    // Entries are made and removed by who may write and search (RFC 8881, 18.1.4, leaves sticky to the
    // operation).
    if (rights->grant(kMayWrite | kMayExecute)) granted |= kAccessModify | kAccessExtend | kAccessDelete;
  } else {
    answer.supported = asked & (kAccessRead | kAccessModify | kAccessExtend | kAccessExecute);
    if (rights->grant(kMayWrite)) granted |= kAccessModify | kAccessExtend;
    if (rights->grant(kMayExecute)) granted |= kAccessExecute;
  }
  if (inode.is_directory() || inode.is_regular()) {
    answer.supported |= asked & (kAccessXattrRead | kAccessXattrWrite | kAccessXattrList);
    if (rights->grant(kMayRead)) granted |= kAccessXattrRead | kAccessXattrList;
    if (may_set_xattrs(who, inode) && rights->grant(kMayWrite)) granted |= kAccessXattrWrite;
  }
  answer.granted = answer.supported & granted;
  return answer;
}

Status check_xattrs(const Requester& who, const Inode& inode, uint32_t wanted) {
  if (!inode.is_directory() && !inode.is_regular()) return Status::kWrongType;
  if ((wanted & kMayWrite) != 0 && !may_set_xattrs(who, inode)) return Status::kPerm;
  return check_access(who, inode, wanted);
}

Status check_create(const Requester& who, const Inode& directory) {
  return check_access(who, directory, kMayWrite | kMayExecute);
}

Status check_remove(const Requester& who, const Inode& directory, const Inode& victim) {
  const Status writable = check_access(who, directory, kMayWrite | kMayExecute);
  if (writable != Status::kOk) return writable;
  const bool sticky = (directory.mode & S_ISVTX) != 0;
  return sticky && !who.owns(directory) && !who.owns(victim) ? Status::kPerm : Status::kOk;
}

Status check_rename(const Requester& who, const Inode& source, const Inode& moved, const Inode& target,
                    const Inode* replaced) {
  const Status out = check_remove(who, source, moved);
  if (out != Status::kOk) return out;
  const Status in = replaced != nullptr ? check_remove(who, target, *replaced) : check_create(who, target);
  if (in != Status::kOk) return in;
  const bool new_parent = moved.is_directory() && source.id != target.id;
  return new_parent ? check_access(who, moved, kMayWrite) : Status::kOk;
}

Status check_exchange(const Requester& who, const Inode& first_directory, const Inode& first,
                      const Inode& second_directory, const Inode& second) {
  const Status there = check_rename(who, first_directory, first, second_directory, &second);
  if (there != Status::kOk) return there;
  return check_rename(who, second_directory, second, first_directory, &first);
}

AttributeVerdict check_attributes(const Requester& who, const Inode& inode, const AttributeWish& wish) {
  AttributeVerdict verdict{Status::kOk, wish.mode};
  if (wish.uid || wish.gid) {
    verdict.status = check_owner(who, inode, wish);
    if (verdict.status != Status::kOk) return verdict;
    // chown(2) takes privilege bits from a file, root's too; an explicit mode in the same request is the
    // newer will.
    if (!verdict.mode && !inode.is_directory()) {
      const uint32_t plain = mode_without_setid(inode);
      if (plain != inode.mode) verdict.mode = plain;
    }
  }
  if (wish.mode) {
    verdict.status = check_mode(who, inode, wish.gid.value_or(inode.gid), *verdict.mode);
    if (verdict.status != Status::kOk) return verdict;
  }
  if (wish.access_acl || wish.default_acl) {
    verdict.status = check_acl(who, inode, wish, verdict.mode);
    if (verdict.status != Status::kOk) return verdict;
  }
  if (wish.size) {
    verdict.status = check_access(who, inode, kMayWrite);
    if (verdict.status != Status::kOk) return verdict;
  }
  verdict.status = check_times(who, inode, wish);
  return verdict;
}

uint32_t mode_without_setid(const Inode& inode) {
  uint32_t mode = inode.mode & ~uint32_t{S_ISUID};
  if ((mode & S_IXGRP) != 0) mode &= ~uint32_t{S_ISGID};
  return mode;
}

}  // namespace pnfsrdma::mds
