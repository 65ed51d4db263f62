// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "shared/nfs4/posix_acl.h"

namespace pnfsrdma::mds {

// More do not fit in the page in which Linux hands the ACL of a FUSE file system over.
inline constexpr size_t kAclEntriesMax = 511;

// One entry of an ACL, as stored. `permissions`: as in a mode's lowest three bits.
struct AclEntry {
  nfs4::PosixAceTag tag = nfs4::PosixAceTag::kUserObject;
  uint32_t id = 0;  // of a named user or group
  uint32_t permissions = 0;
  bool operator==(const AclEntry&) const = default;
};
using AclEntries = std::vector<AclEntry>;

// An ACL of POSIX 1003.1e, draft 17: always valid (acl_valid(3)), or none at all. A value.
class PosixAcl {
 public:
  // None.
  PosixAcl() = default;
  // In any order; nothing for what is not valid: each of owner, owning group and others once, the mask at most once
  // and wherever there are named users or groups, these once each.
  static std::optional<PosixAcl> of(AclEntries entries);
  // What a mode alone means.
  static PosixAcl of_mode(uint32_t mode);
  // The access ACL of an inode: `stored`, and what its mode says of owner, mask and others.
  static std::optional<PosixAcl> of_stored(AclEntries stored, uint32_t mode);

  bool empty() const { return entries_.empty(); }
  // In the order of acl_valid(3): owner, users, owning group, groups, mask, others; by number.
  const AclEntries& entries() const { return entries_; }
  // There is a mask: no mode alone means the same.
  bool extended() const;
  // Owner, mask (or owning group) and others, as the lowest nine bits of a mode.
  uint32_t mode_bits() const;
  // What an access ACL says beyond its mode_bits().
  AclEntries beyond_mode() const;
  // What a default ACL gives to a new object that is asked for with `mode`: no more than the mode does (POSIX 1003.1e,
  // 23.1.2; Linux leaves named entries to the mask as well).
  PosixAcl inherited(uint32_t mode) const;

  bool operator==(const PosixAcl&) const = default;

 private:
  explicit PosixAcl(AclEntries entries) : entries_(std::move(entries)) {}
  uint32_t permissions_of(nfs4::PosixAceTag tag) const;
  AclEntry* find(nfs4::PosixAceTag tag);

  AclEntries entries_;
};

}  // namespace pnfsrdma::mds
