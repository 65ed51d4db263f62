// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/new_inode.h"

#include <sys/stat.h>

#include "server/mds/ops/settable_attributes.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// CVE-2018-13405: in a setgid directory the group is the directory's. One who is not in it does not make a
// setgid file of it, as chmod(2) would not let him.
bool setgid_of_foreign_group(const Credentials& who, const Inode& directory, FileType type) {
  return type != FileType::kDirectory && (directory.mode & S_ISGID) != 0 && !who.is_root() &&
         !who.in_group(directory.gid);
}

constexpr uint32_t kPermissionBits = 0777;

// Its rights at birth (POSIX 1003.1e, 23.1.2; RFC 8275, 5): the directory's default ACL, no more of it than the mode
// grants, else the mode without the umask. An ACL that is asked for stands in place of what is inherited.
Outcome<> take_acls(const CompoundContext& context, const Inode& directory, const SettableAttributes& wanted,
                    NewInode& made) {
  TRY(wanted.check_type(made.type));
  if (made.type == FileType::kSymlink) return {};
  TRY_ASSIGN(const PosixAcl inherited, context.services.names.default_acl(directory));
  if (wanted.access_acl) {
    made.access_acl = *wanted.access_acl;
  } else if (!inherited.empty()) {
    made.access_acl = inherited.inherited(made.mode);
  } else {
    made.mode &= ~(wanted.umask.value_or(0) & kPermissionBits);
  }
  if (made.type == FileType::kDirectory) made.default_acl = wanted.default_acl.value_or(inherited);
  return {};
}

}  // namespace

Outcome<NewInode> new_inode(const CompoundContext& context, const Inode& directory, FileType type,
                            const nfs4::Attributes& attributes) {
  TRY_ASSIGN(const SettableAttributes wanted, settable_attributes(context.services, attributes, 0));
  if (wanted.held_times.any()) return std::unexpected(Status::kInval);  // nobody holds what is not there
  if (wanted.size && type != FileType::kRegular) return std::unexpected(Status::kInval);
  const Credentials who = context.credentials();
  // chown(2) by the back door.
  if (!who.is_root()) {
    if (wanted.uid && *wanted.uid != who.uid) return std::unexpected(Status::kPerm);
    if (wanted.gid && *wanted.gid != who.gid && !who.in_group(*wanted.gid))
      return std::unexpected(Status::kPerm);
  }
  NewInode made;
  made.type = type;
  made.mode = wanted.mode.value_or(0);
  if (setgid_of_foreign_group(who, directory, type)) made.mode &= ~uint32_t{S_ISGID};
  made.uid = wanted.uid.value_or(who.uid);
  made.gid = wanted.gid.value_or(who.gid);
  made.size = wanted.size.value_or(0);
  made.atime = wanted.atime;
  made.mtime = wanted.mtime;
  TRY(take_acls(context, directory, wanted, made));
  return made;
}

}  // namespace pnfsrdma::mds
