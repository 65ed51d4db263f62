// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/new_inode.h"

#include "server/mds/ops/settable_attributes.h"

namespace pnfsrdma::mds {

using nfs4::Status;

Outcome<NewInode> new_inode(const CompoundContext& context, FileType type,
                            const nfs4::Attributes& attributes) {
  TRY_ASSIGN(const SettableAttributes wanted,
             settable_attributes(attributes, 0, context.services.clock.wall_now()));
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
  made.uid = wanted.uid.value_or(who.uid);
  made.gid = wanted.gid.value_or(who.gid);
  made.atime = wanted.atime;
  made.mtime = wanted.mtime;
  return made;
}

}  // namespace pnfsrdma::mds
