// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/permissions.h"
#include "server/mds/ops/services.h"
#include "server/mds/state/delegation_table.h"
#include "shared/nfs4/attributes.h"

namespace pnfsrdma::mds {

// What a client wants set, understood: the common part of SETATTR, CREATE and OPEN.
struct SettableAttributes {
  std::optional<uint64_t> size;
  std::optional<uint32_t> mode;
  std::optional<uint32_t> umask;  // of mode_umask
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<WallTime> atime;
  std::optional<WallTime> mtime;
  std::optional<WallTime> created;
  HeldTimes held_times;         // SETATTR only (delegated_times.h)
  bool times_to_value = false;  // a time of the client's, not "now"
  bool times_to_now = false;
  std::optional<PosixAcl> access_acl;
  std::optional<PosixAcl> default_acl;  // none at all: it is to go

  AttributeWish wish() const;
  // Everything but the size and the held times.
  InodeUpdate update() const;
  bool changes_access() const { return mode || uid || gid || access_acl || default_acl; }
  // It takes room in the store.
  bool stores_acl() const {
    return (access_acl && access_acl->extended()) || (default_acl && !default_acl->empty());
  }
  // A default ACL is a directory's (WRONG_TYPE), while anything may have none; a symbolic link has no ACL at all
  // (ATTRNOTSUPP).
  Outcome<> check_type(FileType type) const;
};

// `mode_now`: what mode_set_masked applies to.
// ATTRNOTSUPP for what is not supported; INVAL for what can only be read, for a mode beyond 07777, for more than one of
// mode, mode_set_masked and mode_umask, for a time with a second's worth of nanoseconds and for an ACL that is not
// valid; BADOWNER; FBIG; NOSPC for an ACL of more than kAclEntriesMax entries.
Outcome<SettableAttributes> settable_attributes(const Services& services, const nfs4::Attributes& attributes,
                                                uint32_t mode_now);

}  // namespace pnfsrdma::mds
