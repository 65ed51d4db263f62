// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "shared/base/bytes.h"
#include "shared/nfs4/posix_acl.h"

// POSIX ACLs as the kernel has them in extended attributes (linux/posix_acl_xattr.h).
namespace pnfsrdma::fuse_client {

enum class AclKind { kAccess, kDefault };

// Of "system.posix_acl_access" and "system.posix_acl_default".
std::optional<AclKind> acl_kind(std::string_view name);
std::string_view acl_name(AclKind kind);

// Nothing for what is no such value; whether the ACL is valid is the server's to say.
std::optional<nfs4::PosixAcl> acl_from_xattr(ByteSpan value);
// In the order in which the kernel reads it: by tag and number. Names are looked up here (client::user_number()).
Bytes acl_to_xattr(const nfs4::PosixAcl& acl);

// What a mode alone means.
nfs4::PosixAcl acl_of_mode(uint32_t mode);
// There is a mask: it is more than a mode.
bool is_extended(const nfs4::PosixAcl& acl);

}  // namespace pnfsrdma::fuse_client
