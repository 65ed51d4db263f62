// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/quota_charge.h"

#include <algorithm>
#include <cerrno>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

bool same_owners(const Inode& one, const Inode& other) {
  return one.uid == other.uid && one.gid == other.gid && one.tree == other.tree;
}

bool same_charge(const Inode& one, const Inode& other) {
  return same_owners(one, other) && one.space_used == other.space_used;
}

// A count that is wrong, as --check tells, must not keep anybody from removing a file.
uint64_t moved(uint64_t used, int64_t by) {
  if (by >= 0) return used + static_cast<uint64_t>(by);
  const auto less = static_cast<uint64_t>(-by);
  return used - std::min(used, less);
}

}  // namespace

void QuotaCharge::add(const Inode* before, const Inode* after) {
  const Inode& inode = after != nullptr ? *after : *before;
  if (inode.id >= quotas_.counted_to()) return;
  const bool was_orphan = before != nullptr && (before->flags & kInodeOrphan) != 0;
  const bool is_orphan = after != nullptr && (after->flags & kInodeOrphan) != 0;
  // Of whose it was it is gone when it becomes another's, too.
  const bool passes_on = was_orphan && is_orphan && !same_owners(*before, *after);
  if (was_orphan && (after == nullptr || passes_on)) destroyed_ = before;
  if (is_orphan && (!was_orphan || passes_on)) orphaned_ = after;
  if (before != nullptr && after != nullptr && same_charge(*before, *after)) return;
  if (before != nullptr) change(*before, -1);
  if (after != nullptr) change(*after, 1);
}

void QuotaCharge::count(const Inode& inode) {
  counts_ = true;
  change(inode, 1);
}

void QuotaCharge::change(const Inode& inode, int64_t sign) {
  const int64_t space = sign * static_cast<int64_t>(inode.space_used);
  const bool again = inode.id < quotas_.recounted_to();
  for (const QuotaId& id : quotas_.owners_of(inode)) {
    Delta& delta = delta_of(id);
    delta.space += space;
    delta.inodes += sign;
    if (!again) continue;
    delta.space_again += space;
    delta.inodes_again += sign;
  }
}

QuotaCharge::Delta& QuotaCharge::delta_of(const QuotaId& id) {
  const auto found = std::ranges::find(deltas_, id, &Delta::id);
  return found != deltas_.end() ? *found : deltas_.emplace_back(Delta{.id = id});
}

Result<> QuotaCharge::put(Batch& batch, const WallTime& now) {
  std::erase_if(deltas_, [](const Delta& delta) { return delta.none(); });
  const auto seconds = static_cast<uint64_t>(now.seconds);
  for (Delta& delta : deltas_) {
    const QuotaLimits limits = quotas_.limits_of(delta.id);
    TRY_ASSIGN(QuotaUsage usage, present(delta));
    usage.space.used = moved(usage.space.used, delta.space);
    usage.inodes.used = moved(usage.inodes.used, delta.inodes);
    delta.usage = {.space = dated(usage.space, limits.space, seconds),
                   .inodes = dated(usage.inodes, limits.inodes, seconds)};
    TRY(check(delta, limits, now));
  }
  for (const Delta& delta : deltas_) put_quota(batch, delta.id, delta.usage);
  return {};
}

// A record that cannot be read must not keep anybody from removing a file either, nor all from being counted: what it
// counted is missing then, until all is counted again.
Result<QuotaUsage> QuotaCharge::present(const Delta& delta) {
  auto usage = quotas_.usage(delta.id);
  const bool goes_on = counts_ || (delta.space <= 0 && delta.inodes <= 0);
  if (usage || usage.error().number() != EUCLEAN || !goes_on) return usage;
  log_error("quotas", "quota-unreadable {}", usage.error().to_string());
  return QuotaUsage{};
}

Result<> QuotaCharge::check(const Delta& delta, const QuotaLimits& limits, const WallTime& now) const {
  if (!quotas_.holds(delta.id)) return {};
  const auto seconds = static_cast<uint64_t>(now.seconds);
  const QuotaGrace& grace = quotas_.grace();
  const bool space = delta.space > 0 && refuses(limits.space, delta.usage.space, grace.space, seconds);
  const bool inodes = delta.inodes > 0 && refuses(limits.inodes, delta.usage.inodes, grace.inodes, seconds);
  if (!space && !inodes) return {};
  if (quotas_.departs(delta.id, now)) return fail(EAGAIN, "over quota, but not for long");
  return fail(EDQUOT, "over quota");
}

void QuotaCharge::keep(const WallTime& now) {
  if (orphaned_ != nullptr) quotas_.depart(*orphaned_, now);
  if (destroyed_ != nullptr) quotas_.gone(*destroyed_);
  for (const Delta& delta : deltas_) {
    quotas_.usage_.put(delta.id, delta.usage);
    if (quotas_.recount_) quotas_.recount_->add(delta.id, delta.space_again, delta.inodes_again);
  }
}

}  // namespace pnfsrdma::mds
