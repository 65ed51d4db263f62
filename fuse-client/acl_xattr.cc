// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/acl_xattr.h"

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "shared/client/file_attributes.h"

namespace pnfsrdma::fuse_client {
namespace {

using nfs4::PosixAceTag;

constexpr std::string_view kAccessName = "system.posix_acl_access";
constexpr std::string_view kDefaultName = "system.posix_acl_default";
constexpr size_t kHeaderBytes = 4;
constexpr size_t kEntryBytes = 8;

constexpr std::array<std::pair<PosixAceTag, uint16_t>, 6> kTags = {
    {{PosixAceTag::kUserObject, ACL_USER_OBJ},
     {PosixAceTag::kUser, ACL_USER},
     {PosixAceTag::kGroupObject, ACL_GROUP_OBJ},
     {PosixAceTag::kGroup, ACL_GROUP},
     {PosixAceTag::kMask, ACL_MASK},
     {PosixAceTag::kOther, ACL_OTHER}}};

uint32_t number_at(ByteSpan bytes, size_t at, size_t size) {
  uint32_t number = 0;
  for (size_t i = 0; i < size; ++i) number |= std::to_integer<uint32_t>(bytes[at + i]) << 8 * i;
  return number;
}

void append(Bytes& bytes, uint32_t number, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(number >> 8 * i & 0xff));
}

struct NumberedEntry {
  PosixAceTag tag;
  uint32_t id = 0;
  uint32_t permissions = 0;
};

NumberedEntry numbered(const nfs4::PosixAce& entry) {
  uint32_t id = ACL_UNDEFINED_ID;
  if (entry.tag == PosixAceTag::kUser) id = client::user_number(entry.who);
  if (entry.tag == PosixAceTag::kGroup) id = client::group_number(entry.who);
  return {entry.tag, id, entry.permissions};
}

}  // namespace

std::optional<AclKind> acl_kind(std::string_view name) {
  if (name == kAccessName) return AclKind::kAccess;
  if (name == kDefaultName) return AclKind::kDefault;
  return std::nullopt;
}

std::string_view acl_name(AclKind kind) {
  return kind == AclKind::kAccess ? kAccessName : kDefaultName;
}

std::optional<nfs4::PosixAcl> acl_from_xattr(ByteSpan value) {
  if (value.size() < kHeaderBytes || (value.size() - kHeaderBytes) % kEntryBytes != 0 ||
      number_at(value, 0, 4) != POSIX_ACL_XATTR_VERSION)
    return std::nullopt;
  nfs4::PosixAcl acl;
  acl.reserve((value.size() - kHeaderBytes) / kEntryBytes);
  for (size_t at = kHeaderBytes; at < value.size(); at += kEntryBytes) {
    const auto* tag = std::ranges::find(kTags, number_at(value, at, 2), &decltype(kTags)::value_type::second);
    if (tag == kTags.end()) return std::nullopt;
    const bool named = tag->first == PosixAceTag::kUser || tag->first == PosixAceTag::kGroup;
    if (named && number_at(value, at + 4, 4) == static_cast<uint32_t>(ACL_UNDEFINED_ID)) return std::nullopt;
    acl.push_back({tag->first, number_at(value, at + 2, 2),
                   named ? std::to_string(number_at(value, at + 4, 4)) : std::string()});
  }
  return acl;
}

Bytes acl_to_xattr(const nfs4::PosixAcl& acl) {
  std::vector<NumberedEntry> entries;
  entries.reserve(acl.size());
  for (const nfs4::PosixAce& entry : acl) entries.push_back(numbered(entry));
  // The numbers of the tags are in this order, too.
  std::ranges::sort(entries, {}, [](const NumberedEntry& one) { return std::pair(one.tag, one.id); });
  Bytes value;
  value.reserve(kHeaderBytes + entries.size() * kEntryBytes);
  append(value, POSIX_ACL_XATTR_VERSION, 4);
  for (const NumberedEntry& entry : entries) {
    append(value, std::ranges::find(kTags, entry.tag, &decltype(kTags)::value_type::first)->second, 2);
    append(value, entry.permissions, 2);
    append(value, entry.id, 4);
  }
  return value;
}

nfs4::PosixAcl acl_of_mode(uint32_t mode) {
  return {{PosixAceTag::kUserObject, mode >> 6 & 7, ""},
          {PosixAceTag::kGroupObject, mode >> 3 & 7, ""},
          {PosixAceTag::kOther, mode & 7, ""}};
}

bool is_extended(const nfs4::PosixAcl& acl) {
  return std::ranges::find(acl, PosixAceTag::kMask, &nfs4::PosixAce::tag) != acl.end();
}

}  // namespace pnfsrdma::fuse_client
