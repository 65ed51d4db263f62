// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/held_locks.h"

#include <fmt/format.h>

namespace pnfsrdma::sim {
namespace {

bool may_be_lost(const HeldLocks::Lock& lock, uint64_t revocations) {
  return lock.is_doubtful || lock.revocations != revocations || lock.inode->locks().any_lost();
}

}  // namespace

std::optional<std::string> HeldLocks::given(Lock lock, Place& place) {
  std::optional<std::string> violation;
  for (const Lock& other : locks_) {
    const bool same_file = other.inode->handle == lock.inode->handle;
    const bool share_bytes = other.range.first <= lock.range.last && lock.range.first <= other.range.last;
    const bool go_together = !other.range.exclusive && !lock.range.exclusive;
    if (!same_file || !share_bytes || go_together) continue;
    if (lock.is_doubtful || may_be_lost(other, lock.revocations)) continue;
    violation = fmt::format("clients {} and {} have locked the same bytes, {} to {}", other.client,
                            lock.client, lock.range.first, lock.range.last);
  }
  place = locks_.insert(locks_.end(), std::move(lock));
  return violation;
}

}  // namespace pnfsrdma::sim
