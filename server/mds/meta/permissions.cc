// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/permissions.h"

#include <sys/stat.h>

#include <algorithm>

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

constexpr uint32_t kAnyExecute = S_IXUSR | S_IXGRP | S_IXOTH;

bool owns(const Credentials& who, const Inode& inode) {
  return who.is_root() || who.uid == inode.uid;
}

// chmod(2): only the owner; setgid on a file of a group one is not in is dropped silently.
Status check_mode(const Credentials& who, const Inode& inode, uint32_t group, uint32_t& mode) {
  if (!owns(who, inode)) return Status::kPerm;
  mode &= kModeMask;
  if (!who.is_root() && !inode.is_directory() && !who.in_group(group)) mode &= ~uint32_t{S_ISGID};
  return Status::kOk;
}

// chown(2), restricted: root gives away; the owner may move the file to a group of his.
Status check_owner(const Credentials& who, const Inode& inode, const AttributeWish& wish) {
  if (who.is_root()) return Status::kOk;
  const bool gives_away = wish.uid && *wish.uid != inode.uid;
  const bool other_group = wish.gid && *wish.gid != inode.gid && !who.in_group(*wish.gid);
  return who.uid != inode.uid || gives_away || other_group ? Status::kPerm : Status::kOk;
}

Status check_times(const Credentials& who, const Inode& inode, const AttributeWish& wish) {
  if (owns(who, inode)) return Status::kOk;
  if (wish.times_to_value) return Status::kPerm;
  return wish.times_to_now ? check_access(who, inode, kMayWrite) : Status::kOk;
}

}  // namespace

bool Credentials::in_group(uint32_t group) const {
  return gid == group || std::ranges::find(groups, group) != groups.end();
}

uint32_t allowed(const Credentials& who, const Inode& inode) {
  if (who.is_root()) {
    const bool execute = inode.is_directory() || (inode.mode & kAnyExecute) != 0;
    return kMayRead | kMayWrite | (execute ? kMayExecute : 0);
  }
  // The first class that fits decides, even if a later one would grant more.
  if (who.uid == inode.uid) return inode.mode >> 6 & 7;
  if (who.in_group(inode.gid)) return inode.mode >> 3 & 7;
  return inode.mode & 7;
}

Status check_access(const Credentials& who, const Inode& inode, uint32_t wanted) {
  return (allowed(who, inode) & wanted) == wanted ? Status::kOk : Status::kAccess;
}

AccessAnswer access_mask(const Credentials& who, const Inode& inode, uint32_t asked) {
  const uint32_t bits = allowed(who, inode);
  const bool write = (bits & kMayWrite) != 0;
  const bool execute = (bits & kMayExecute) != 0;
  AccessAnswer answer;
  uint32_t granted = (bits & kMayRead) != 0 ? kAccessRead : 0;
  if (inode.is_directory()) {
    answer.supported = asked & (kAccessRead | kAccessLookup | kAccessModify | kAccessExtend | kAccessDelete);
    if (execute) granted |= kAccessLookup;
    // Entries are made and removed by who may write and search (RFC 8881, 18.1.4, leaves sticky to the
    // operation).
    if (write && execute) granted |= kAccessModify | kAccessExtend | kAccessDelete;
  } else {
    answer.supported = asked & (kAccessRead | kAccessModify | kAccessExtend | kAccessExecute);
    if (write) granted |= kAccessModify | kAccessExtend;
    if (execute) granted |= kAccessExecute;
  }
  if (inode.is_directory() || inode.is_regular()) {
    answer.supported |= asked & (kAccessXattrRead | kAccessXattrWrite | kAccessXattrList);
    if (check_xattrs(who, inode, kMayRead) == Status::kOk) granted |= kAccessXattrRead | kAccessXattrList;
    if (check_xattrs(who, inode, kMayWrite) == Status::kOk) granted |= kAccessXattrWrite;
  }
  answer.granted = answer.supported & granted;
  return answer;
}

Status check_xattrs(const Credentials& who, const Inode& inode, uint32_t wanted) {
  if (!inode.is_directory() && !inode.is_regular()) return Status::kWrongType;
  const bool sticky = inode.is_directory() && (inode.mode & S_ISVTX) != 0;
  if ((wanted & kMayWrite) != 0 && sticky && !owns(who, inode)) return Status::kPerm;
  return check_access(who, inode, wanted);
}

Status check_create(const Credentials& who, const Inode& directory) {
  return check_access(who, directory, kMayWrite | kMayExecute);
}

Status check_remove(const Credentials& who, const Inode& directory, const Inode& victim) {
  const Status writable = check_access(who, directory, kMayWrite | kMayExecute);
  if (writable != Status::kOk) return writable;
  const bool sticky = (directory.mode & S_ISVTX) != 0;
  return sticky && !owns(who, directory) && !owns(who, victim) ? Status::kPerm : Status::kOk;
}

Status check_rename(const Credentials& who, const Inode& source, const Inode& moved, const Inode& target,
                    const Inode* replaced) {
  const Status out = check_remove(who, source, moved);
  if (out != Status::kOk) return out;
  const Status in = replaced != nullptr ? check_remove(who, target, *replaced) : check_create(who, target);
  if (in != Status::kOk) return in;
  const bool new_parent = moved.is_directory() && source.id != target.id;
  return new_parent ? check_access(who, moved, kMayWrite) : Status::kOk;
}

Status check_exchange(const Credentials& who, const Inode& first_directory, const Inode& first,
                      const Inode& second_directory, const Inode& second) {
  const Status there = check_rename(who, first_directory, first, second_directory, &second);
  if (there != Status::kOk) return there;
  return check_rename(who, second_directory, second, first_directory, &first);
}

AttributeVerdict check_attributes(const Credentials& who, const Inode& inode, const AttributeWish& wish) {
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
