// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "shared/base/clock.h"

namespace pnfsrdma::mds {

// Whose use is counted. The values are on media.
enum class QuotaKind : uint32_t { kUser = 1, kGroup = 2, kTree = 3 };

constexpr const char* to_string(QuotaKind kind) {
  switch (kind) {
    case QuotaKind::kUser:
      return "user";
    case QuotaKind::kGroup:
      return "group";
    case QuotaKind::kTree:
      break;
  }
  return "tree";
}

// A user's or group's number, or a tree's.
struct QuotaId {
  QuotaKind kind = QuotaKind::kUser;
  uint64_t number = 0;
  auto operator<=>(const QuotaId&) const = default;
};

// The next one in order.
constexpr QuotaId behind(const QuotaId& id) {
  return {id.kind, id.number + 1};
}

struct QuotaHash {
  size_t operator()(const QuotaId& id) const {
    return std::hash<uint64_t>()((id.number << 2) | static_cast<uint64_t>(id.kind));
  }
};

// 0: no limit. Use may be above `soft` for the grace period, and never grows above `hard`.
struct QuotaLimit {
  uint64_t soft = 0;
  uint64_t hard = 0;

  bool operator==(const QuotaLimit&) const = default;
  bool none() const { return soft == 0 && hard == 0; }
};

struct QuotaLimits {
  QuotaLimit space;   // bytes
  QuotaLimit inodes;  // files, directories and all else that has an inode

  bool operator==(const QuotaLimits&) const = default;
  bool none() const { return space.none() && inodes.none(); }
};

// For each user, or each group, that has no limits of its own, but for root.
struct QuotaDefault {
  QuotaLimits limits;
  // Since when there is a soft limit that is no higher, seconds since 1970: nobody has been above it for longer.
  uint64_t space_since = 0;
  uint64_t inodes_since = 0;

  bool operator==(const QuotaDefault&) const = default;
};

// Of one of the two; how much, and for how long it has been above its soft limit.
struct QuotaUse {
  uint64_t used = 0;
  uint64_t over_since = 0;  // seconds since 1970; 0: it is not

  bool operator==(const QuotaUse&) const = default;
};

struct QuotaUsage {
  QuotaUse space;
  QuotaUse inodes;

  bool operator==(const QuotaUsage&) const = default;
  bool empty() const { return space.used == 0 && inodes.used == 0; }
};

// How long use may be above a soft limit, seconds.
struct QuotaGrace {
  uint64_t space = 7 * 24 * 3600;
  uint64_t inodes = 7 * 24 * 3600;

  bool operator==(const QuotaGrace&) const = default;
};

// Of `use` as it would be behind a growth.
constexpr bool refuses(const QuotaLimit& limit, const QuotaUse& use, uint64_t grace, uint64_t now) {
  if (limit.hard != 0 && use.used > limit.hard) return true;
  return limit.soft != 0 && use.used > limit.soft && use.over_since != 0 && now >= use.over_since + grace;
}

// `use` with its `over_since`, as of now.
constexpr QuotaUse dated(QuotaUse use, const QuotaLimit& limit, uint64_t now) {
  const bool over = limit.soft != 0 && use.used > limit.soft;
  if (!over) use.over_since = 0;
  if (over && use.over_since == 0) use.over_since = now;
  return use;
}

}  // namespace pnfsrdma::mds
