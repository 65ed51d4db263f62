// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/posix_acl.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pnfsrdma::mds {
namespace {

using nfs4::PosixAceTag;

constexpr uint32_t kAllPermissions = 7;

bool is_named(PosixAceTag tag) {
  return tag == PosixAceTag::kUser || tag == PosixAceTag::kGroup;
}

// The numbers of the tags are in the order of acl_valid(3).
std::pair<PosixAceTag, uint32_t> place_of(const AclEntry& entry) {
  return {entry.tag, entry.id};
}

size_t count_of(const AclEntries& entries, PosixAceTag tag) {
  return static_cast<size_t>(std::ranges::count(entries, tag, &AclEntry::tag));
}

}  // namespace

std::optional<PosixAcl> PosixAcl::of(AclEntries entries) {
  for (AclEntry& entry : entries) {
    if ((entry.permissions & ~kAllPermissions) != 0 || !xdr_known(entry.tag)) return std::nullopt;
    if (!is_named(entry.tag)) entry.id = 0;
  }
  std::ranges::sort(entries, {}, place_of);
  // One that is there twice, the mask among them, stands beside itself.
  if (std::ranges::adjacent_find(entries, {}, place_of) != entries.end()) return std::nullopt;
  for (const PosixAceTag tag : {PosixAceTag::kUserObject, PosixAceTag::kGroupObject, PosixAceTag::kOther}) {
    if (count_of(entries, tag) != 1) return std::nullopt;
  }
  const bool named = count_of(entries, PosixAceTag::kUser) + count_of(entries, PosixAceTag::kGroup) > 0;
  if (named && count_of(entries, PosixAceTag::kMask) == 0) return std::nullopt;
  return PosixAcl(std::move(entries));
}

PosixAcl PosixAcl::of_mode(uint32_t mode) {
  return PosixAcl({{PosixAceTag::kUserObject, 0, mode >> 6 & kAllPermissions},
                   {PosixAceTag::kGroupObject, 0, mode >> 3 & kAllPermissions},
                   {PosixAceTag::kOther, 0, mode & kAllPermissions}});
}

std::optional<PosixAcl> PosixAcl::of_stored(AclEntries stored, uint32_t mode) {
  stored.push_back({PosixAceTag::kUserObject, 0, mode >> 6 & kAllPermissions});
  stored.push_back({PosixAceTag::kMask, 0, mode >> 3 & kAllPermissions});
  stored.push_back({PosixAceTag::kOther, 0, mode & kAllPermissions});
  return of(std::move(stored));
}

bool PosixAcl::extended() const {
  return count_of(entries_, PosixAceTag::kMask) > 0;
}

uint32_t PosixAcl::mode_bits() const {
  const PosixAceTag group = extended() ? PosixAceTag::kMask : PosixAceTag::kGroupObject;
  return permissions_of(PosixAceTag::kUserObject) << 6 | permissions_of(group) << 3 |
         permissions_of(PosixAceTag::kOther);
}

AclEntries PosixAcl::beyond_mode() const {
  AclEntries beyond;
  if (!extended()) return beyond;
  std::ranges::copy_if(entries_, std::back_inserter(beyond), [](const AclEntry& entry) {
    return is_named(entry.tag) || entry.tag == PosixAceTag::kGroupObject;
  });
  return beyond;
}

PosixAcl PosixAcl::inherited(uint32_t mode) const {
  PosixAcl narrowed = *this;
  const PosixAceTag group = extended() ? PosixAceTag::kMask : PosixAceTag::kGroupObject;
  narrowed.find(PosixAceTag::kUserObject)->permissions &= mode >> 6;
  narrowed.find(group)->permissions &= mode >> 3;
  narrowed.find(PosixAceTag::kOther)->permissions &= mode;
  return narrowed;
}

uint32_t PosixAcl::permissions_of(PosixAceTag tag) const {
  const auto found = std::ranges::find(entries_, tag, &AclEntry::tag);
  return found == entries_.end() ? 0 : found->permissions;
}

AclEntry* PosixAcl::find(PosixAceTag tag) {
  return &*std::ranges::find(entries_, tag, &AclEntry::tag);
}

}  // namespace pnfsrdma::mds
