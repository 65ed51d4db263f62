// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/nfs4/basic_types.h"

// POSIX ACLs as file attributes of NFSv4.2 (draft-ietf-nfsv4-posix-acls), and mode_umask (RFC 8275).
namespace pnfsrdma::nfs4 {

// aclmodel4: which kind of ACL decides about an object.
enum class AclModel : uint32_t { kNfs4 = 1, kPosixDraft = 2, kNone = 3 };
constexpr bool xdr_known(AclModel model) {
  return model >= AclModel::kNfs4 && model <= AclModel::kNone;
}

// aclscope4: how far that is the same.
enum class AclScope : uint32_t { kFileObject = 1, kFileSystem = 2, kServer = 3 };
constexpr bool xdr_known(AclScope scope) {
  return scope >= AclScope::kFileObject && scope <= AclScope::kServer;
}

// posixacetag4
enum class PosixAceTag : uint32_t {
  kUserObject = 1,
  kUser = 2,
  kGroupObject = 3,
  kGroup = 4,
  kMask = 5,
  kOther = 6,
};
constexpr bool xdr_known(PosixAceTag tag) {
  return tag >= PosixAceTag::kUserObject && tag <= PosixAceTag::kOther;
}

// posixace4. `permissions`: read 4, write 2, execute 1. `who`: of a named user or group, as in owner and owner_group;
// else of no meaning.
struct PosixAce {
  PosixAceTag tag = PosixAceTag::kUserObject;
  uint32_t permissions = 0;
  Text who;
};
// In any order.
using PosixAcl = xdr::List<PosixAce, kPosixAclMax>;

// mode_umask4: the mode of a new object, and what the caller's umask takes from it where no default ACL decides.
struct ModeUmask {
  uint32_t mode = 0;
  uint32_t umask = 0;
};

// What a server of ours says in rawdev of an object that is no device, where the value has no meaning (RFC 8881,
// 5.8.2.31): which ACLs it has beyond its mode, so that nobody need ask for them (docs/protocol.md). Bits of specdata1.
inline constexpr uint32_t kHasAccessAcl = 1;
inline constexpr uint32_t kHasDefaultAcl = 2;

}  // namespace pnfsrdma::nfs4
