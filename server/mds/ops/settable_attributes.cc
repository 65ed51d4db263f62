// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/settable_attributes.h"

#include <utility>

#include "server/mds/ops/attribute_values.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

inline constexpr uint32_t kNanosecondsPerSecond = 1'000'000'000;
inline constexpr uint32_t kUmaskBits = 0777;

Outcome<std::optional<uint32_t>> owner_id(const std::optional<nfs4::Text>& text) {
  if (!text) return std::optional<uint32_t>();
  const auto id = parse_owner(*text);
  if (!id) return std::unexpected(Status::kBadOwner);
  return id;
}

Outcome<std::optional<uint32_t>> wanted_mode(const nfs4::Attributes& attributes, uint32_t mode_now) {
  if (attributes.mode.has_value() + attributes.mode_set_masked.has_value() +
          attributes.mode_umask.has_value() >
      1)
    return std::unexpected(Status::kInval);
  std::optional<uint32_t> mode = attributes.mode;
  if (const auto& masked = attributes.mode_umask) {
    if ((masked->umask & ~kUmaskBits) != 0) return std::unexpected(Status::kInval);
    mode = masked->mode;
  }
  if (const auto& masked = attributes.mode_set_masked) {
    // RFC 8881, 6.2.5: no bit may be set that the mask does not name.
    if ((masked->value & ~masked->mask) != 0 || (masked->mask & ~kModeMask) != 0) {
      return std::unexpected(Status::kInval);
    }
    mode = (mode_now & ~masked->mask) | masked->value;
  }
  if (mode && (*mode & ~kModeMask) != 0) return std::unexpected(Status::kInval);
  return mode;
}

Outcome<PosixAcl> posix_acl(const nfs4::PosixAcl& entries) {
  if (entries.size() > kAclEntriesMax) return std::unexpected(Status::kNoSpc);
  AclEntries read;
  read.reserve(entries.size());
  for (const nfs4::PosixAce& entry : entries) {
    const bool named = entry.tag == nfs4::PosixAceTag::kUser || entry.tag == nfs4::PosixAceTag::kGroup;
    const auto id = named ? parse_owner(entry.who) : 0;
    // The kernel of a mount cannot take an ACL that names this one, and would open the file to nobody.
    if (!id || *id == UINT32_MAX) return std::unexpected(Status::kBadOwner);
    read.push_back({entry.tag, *id, entry.permissions});
  }
  auto acl = PosixAcl::of(std::move(read));
  if (!acl) return std::unexpected(Status::kInval);
  return *std::move(acl);
}

Outcome<> take_acls(const nfs4::Attributes& attributes, SettableAttributes& settable) {
  if (const auto& access = attributes.posix_access_acl) {
    TRY_ASSIGN(settable.access_acl, posix_acl(*access));
  }
  if (const auto& inherited = attributes.posix_default_acl) {
    settable.default_acl.emplace();
    if (!inherited->empty()) {
      TRY_ASSIGN(settable.default_acl, posix_acl(*inherited));
    }
  }
  return {};
}

Outcome<WallTime> checked(const nfs4::Time& time) {
  if (time.nanoseconds >= kNanosecondsPerSecond) return std::unexpected(Status::kInval);
  return time.to_wall_time();
}

Outcome<> take_time(const std::optional<nfs4::SetTime>& wanted, WallTime now, std::optional<WallTime>& time,
                    SettableAttributes& settable) {
  if (!wanted) return {};
  if (const nfs4::Time* value = wanted->get_if<nfs4::TimeHow::kClientTime>()) {
    TRY_ASSIGN(time, checked(*value));
    settable.times_to_value = true;
  } else {
    time = now;
    settable.times_to_now = true;
  }
  return {};
}

}  // namespace

AttributeWish SettableAttributes::wish() const {
  return {.mode = mode,
          .uid = uid,
          .gid = gid,
          .size = size.has_value(),
          .times_to_now = times_to_now,
          .times_to_value = times_to_value || created.has_value(),
          .access_acl = access_acl.has_value(),
          .default_acl = default_acl.has_value()};
}

InodeUpdate SettableAttributes::update() const {
  InodeUpdate update;
  update.mode = mode;
  update.uid = uid;
  update.gid = gid;
  update.atime = atime;
  update.mtime = mtime;
  update.created = created;
  update.access_acl = access_acl;
  update.default_acl = default_acl;
  return update;
}

Outcome<> SettableAttributes::check_type(FileType type) const {
  if ((access_acl || default_acl) && type == FileType::kSymlink) return std::unexpected(Status::kAttrNotSupp);
  if (default_acl && !default_acl->empty() && type != FileType::kDirectory)
    return std::unexpected(Status::kWrongType);
  return {};
}

Outcome<SettableAttributes> settable_attributes(const Services& services, const nfs4::Attributes& attributes,
                                                uint32_t mode_now) {
  const WallTime now = services.clock.wall_now();
  const nfs4::Bitmap asked = attributes.mask();
  if (attributes.unsupported || !supported_attributes(services).contains(asked)) {
    return std::unexpected(Status::kAttrNotSupp);
  }
  if (!settable_attributes().contains(asked)) return std::unexpected(Status::kInval);
  SettableAttributes settable;
  settable.size = attributes.size;
  if (settable.size && *settable.size > kFileSizeMax) return std::unexpected(Status::kFBig);
  TRY_ASSIGN(settable.mode, wanted_mode(attributes, mode_now));
  if (attributes.mode_umask) settable.umask = attributes.mode_umask->umask;
  TRY(take_acls(attributes, settable));
  TRY_ASSIGN(settable.uid, owner_id(attributes.owner));
  TRY_ASSIGN(settable.gid, owner_id(attributes.owner_group));
  TRY(take_time(attributes.time_access_set, now, settable.atime, settable));
  TRY(take_time(attributes.time_modify_set, now, settable.mtime, settable));
  if (attributes.time_create) {
    TRY_ASSIGN(settable.created, checked(*attributes.time_create));
  }
  if (attributes.time_delegated_access) {
    TRY_ASSIGN(settable.held_times.access, checked(*attributes.time_delegated_access));
  }
  if (attributes.time_delegated_modify) {
    TRY_ASSIGN(settable.held_times.modify, checked(*attributes.time_delegated_modify));
  }
  return settable;
}

}  // namespace pnfsrdma::mds
