// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include "server/mds/meta/inode.h"
#include "server/mds/meta/posix_acl.h"
#include "shared/nfs4/status.h"

// POSIX permissions: who may do what to an inode, by its mode and its access ACL. Nothing but reading that ACL, where
// there is one and it decides; squashing and read-only exports are the caller's. The errors of that read are those of
// all functions here that have a status.
namespace pnfsrdma::mds {

// Who asks, after squashing. uid 0 is root.
struct Credentials {
  uint32_t uid = 65534;
  uint32_t gid = 65534;
  std::vector<uint32_t> groups;  // supplementary

  bool is_root() const { return uid == 0; }
  bool in_group(uint32_t group) const;
  bool operator==(const Credentials&) const = default;
};

// Where ACLs come from.
class AclReader {
 public:
  virtual ~AclReader() = default;
  // Of an inode as it is given.
  virtual std::expected<PosixAcl, nfs4::Status> access_acl(const Inode& inode) = 0;
};

// Who asks, and how what decides about it is read.
struct Requester {
  Credentials who;
  AclReader& acls;

  bool is_root() const { return who.is_root(); }
  bool owns(const Inode& inode) const { return is_root() || who.uid == inode.uid; }
};

// Permission bits as in a mode's lowest three.
inline constexpr uint32_t kMayRead = 4;
inline constexpr uint32_t kMayWrite = 2;
inline constexpr uint32_t kMayExecute = 1;  // directories: search

// Whether an access ACL grants all of `wanted` (kMay*) to somebody who is not root (POSIX 1003.1e, 23.1.5): the owner's
// entry, the user's, one of his groups' that grants it all, or that of others. The mask limits the second and third.
bool grants(const PosixAcl& acl, const Credentials& who, uint32_t owner, uint32_t group, uint32_t wanted);

// What the mode alone says: of an object without an ACL, and to a client that knows none.
bool mode_grants(const Credentials& who, const Inode& inode, uint32_t wanted);

// kOk or kAccess: whether all of `wanted` is granted. Root may read and write always, execute where any execute bit is
// set, and search every directory.
nfs4::Status check_access(const Requester& who, const Inode& inode, uint32_t wanted);

// ACCESS4_* bits (RFC 8881, 18.1): those of `asked` that this server knows for the type, and those of them
// granted.
inline constexpr uint32_t kAccessRead = 0x01;
inline constexpr uint32_t kAccessLookup = 0x02;
inline constexpr uint32_t kAccessModify = 0x04;
inline constexpr uint32_t kAccessExtend = 0x08;
inline constexpr uint32_t kAccessDelete = 0x10;
inline constexpr uint32_t kAccessExecute = 0x20;
// Extended attributes (RFC 8276, 8.5): user.* ones are read and listed by who may read, and changed by who may write.
inline constexpr uint32_t kAccessXattrRead = 0x40;
inline constexpr uint32_t kAccessXattrWrite = 0x80;
inline constexpr uint32_t kAccessXattrList = 0x100;
struct AccessAnswer {
  uint32_t supported = 0;
  uint32_t granted = 0;
};
std::expected<AccessAnswer, nfs4::Status> access_mask(const Requester& who, const Inode& inode,
                                                      uint32_t asked);

// xattr(7), "user" attributes: of regular files and directories only (kWrongType); in a sticky directory they are set
// by its owner only (kPerm). `wanted`: kMayRead or kMayWrite; kAccess.
nfs4::Status check_xattrs(const Requester& who, const Inode& inode, uint32_t wanted);
// A new name in `directory`: write and search. kAccess.
nfs4::Status check_create(const Requester& who, const Inode& directory);
// Taking away or replacing `victim`'s name in `directory`: write and search (kAccess); in a sticky directory
// only for the owner of the file or of the directory, or root (kPerm).
nfs4::Status check_remove(const Requester& who, const Inode& directory, const Inode& victim);
// rename(2): check_remove at the source, check_create (or check_remove of `replaced`, if any) at the target,
// and write on a directory that moves to another parent (its ".." changes).
nfs4::Status check_rename(const Requester& who, const Inode& source, const Inode& moved, const Inode& target,
                          const Inode* replaced);
// rename(2) with RENAME_EXCHANGE: check_rename() of both.
nfs4::Status check_exchange(const Requester& who, const Inode& first_directory, const Inode& first,
                            const Inode& second_directory, const Inode& second);
// What SETATTR asks for. ACLs are the owner's to set, as the mode is. Times: `now` may be set by whoever may write,
// other values by the owner only.
struct AttributeWish {
  std::optional<uint32_t> mode;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  bool size = false;
  bool times_to_now = false;
  bool times_to_value = false;
  bool access_acl = false;
  bool default_acl = false;
};
// What is done instead: bits cleared as chmod(2) and chown(2) say.
struct AttributeVerdict {
  nfs4::Status status;           // kOk, kPerm, kAccess
  std::optional<uint32_t> mode;  // to set, with setuid and setgid cleared where they must be
};
// `size` is not checked here when the caller has the file open for writing: then leave it false.
AttributeVerdict check_attributes(const Requester& who, const Inode& inode, const AttributeWish& wish);

// The mode after somebody without privilege has written data or changed the owner: setuid goes; setgid goes
// where the group may execute (else it is no setgid but, of old, mandatory locking).
uint32_t mode_without_setid(const Inode& inode);

}  // namespace pnfsrdma::mds
