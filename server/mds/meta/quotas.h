// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/mds/meta/inode.h"
#include "server/mds/meta/key_value.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// Whose use is counted. The values are on media.
enum class QuotaKind : uint32_t {
  kUser = 1,   // the owner of a file
  kGroup = 2,  // its group
  kTree = 3,   // a directory and all below it: Inode::tree
};
constexpr bool xdr_known(QuotaKind value) {
  return value >= QuotaKind::kUser && value <= QuotaKind::kTree;
}

struct QuotaSubject {
  QuotaKind kind = QuotaKind::kUser;
  uint32_t id = 0;  // uid, gid, number of a tree
  auto operator<=>(const QuotaSubject&) const = default;
};

// What has been given to files: grains, those ahead of an end included; shared ones as often as files have them.
struct QuotaUsage {
  uint64_t bytes = 0;
  uint64_t inodes = 0;
  bool operator==(const QuotaUsage&) const = default;
};

// 0: none.
struct QuotaLimits {
  uint64_t bytes_soft = 0;
  uint64_t bytes_hard = 0;
  uint64_t inodes_soft = 0;
  uint64_t inodes_hard = 0;
  bool operator==(const QuotaLimits&) const = default;
};

struct Quota {
  QuotaSubject subject;
  QuotaUsage usage;
  QuotaLimits limits;       // in effect
  bool by_default = false;  // they are those of its kind
  // Since when the use is above the soft limit; behind kSoftGrace nothing more is given.
  std::optional<WallTime> bytes_over_since;
  std::optional<WallTime> inodes_over_since;
};

// As quota(8) has it.
inline constexpr std::chrono::days kSoftGrace{7};

// Counts what users, groups and trees have, and says when somebody has enough. As XFS does it: the owner is charged,
// whoever writes; user 0 and group 0 have no limit. Off until an administrator switches it on: then nothing is counted
// and nothing costs. All limits, and the use of those who have any, are in memory and on record. Control loop only.
class Quotas {
 public:
  enum class State {
    kOff,
    kCounting,  // inodes are counted, in the background; no limit holds yet
    kOn,
  };
  State state() const;
  // 0 to 100 while it is counting.
  uint32_t percent() const;

  // Durable when the store's last_namespace_sequence() is. EIO, ENOSPC, EAGAIN.
  Result<> switch_on();
  Result<> switch_off();  // limits stay on record
  // Limits of all of none: none. EINVAL: a soft limit above the hard one.
  Result<> set_limits(const QuotaSubject& subject, const QuotaLimits& limits);
  Result<> set_default_limits(QuotaKind kind, const QuotaLimits& limits);
  QuotaLimits default_limits(QuotaKind kind) const;

  // In order, behind `from`; at most `most`: those who have anything, or a limit.
  std::vector<Quota> page(QuotaKind kind, std::optional<uint32_t> from, size_t most) const;
  std::optional<Quota> find(const QuotaSubject& subject) const;
};

}  // namespace pnfsrdma::mds
