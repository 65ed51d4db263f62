// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/settable_attributes.h"

#include "server/mds/ops/attribute_values.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

inline constexpr uint32_t kNanosecondsPerSecond = 1'000'000'000;

Outcome<std::optional<uint32_t>> owner_id(const std::optional<nfs4::Text>& text) {
  if (!text) return std::optional<uint32_t>();
  const auto id = parse_owner(*text);
  if (!id) return std::unexpected(Status::kBadOwner);
  return id;
}

Outcome<std::optional<uint32_t>> wanted_mode(const nfs4::Attributes& attributes, uint32_t mode_now) {
  if (attributes.mode && attributes.mode_set_masked) return std::unexpected(Status::kInval);
  std::optional<uint32_t> mode = attributes.mode;
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
          .times_to_value = times_to_value || created.has_value()};
}

InodeUpdate SettableAttributes::update() const {
  InodeUpdate update;
  update.mode = mode;
  update.uid = uid;
  update.gid = gid;
  update.atime = atime;
  update.mtime = mtime;
  update.created = created;
  return update;
}

Outcome<SettableAttributes> settable_attributes(const nfs4::Attributes& attributes, uint32_t mode_now,
                                                WallTime now) {
  const nfs4::Bitmap asked = attributes.mask();
  if (attributes.unsupported || !supported_attributes().contains(asked)) {
    return std::unexpected(Status::kAttrNotSupp);
  }
  if (!settable_attributes().contains(asked)) return std::unexpected(Status::kInval);
  SettableAttributes settable;
  settable.size = attributes.size;
  if (settable.size && *settable.size > kFileSizeMax) return std::unexpected(Status::kFBig);
  TRY_ASSIGN(settable.mode, wanted_mode(attributes, mode_now));
  TRY_ASSIGN(settable.uid, owner_id(attributes.owner));
  TRY_ASSIGN(settable.gid, owner_id(attributes.owner_group));
  TRY(take_time(attributes.time_access_set, now, settable.atime, settable));
  TRY(take_time(attributes.time_modify_set, now, settable.mtime, settable));
  if (attributes.time_create) {
    TRY_ASSIGN(settable.created, checked(*attributes.time_create));
  }
  return settable;
}

}  // namespace pnfsrdma::mds
