// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/delegated_times.h"

#include <algorithm>

namespace pnfsrdma::mds {

using nfs4::Status;

HeldTimes believed(const DelegationState& held, const Inode& inode, const HeldTimes& told, WallTime now) {
  HeldTimes times;
  if (told.access && *told.access > inode.atime) times.access = std::min(*told.access, now);
  // A write through the server has its own time on record: what the holder says of it may be a little earlier.
  const WallTime earliest = held.mtime_then.value_or(inode.mtime);
  if (told.modify && *told.modify != inode.mtime && *told.modify >= earliest)
    times.modify = std::min(*told.modify, now);
  return times;
}

Outcome<HeldTimes> told_times(const CompoundContext& context, const nfs4::Stateid& asked, const Inode& inode,
                              const HeldTimes& wanted) {
  if (!wanted.any()) return HeldTimes{};
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(asked));
  if (kind_of(stateid.other) != StateKind::kDelegation) return std::unexpected(Status::kBadStateid);
  TRY_ASSIGN(const DelegationState* held, context.find_delegation(stateid, inode.id));
  if (!held->keeps_times) return std::unexpected(Status::kBadStateid);
  if (wanted.modify && held->kind != DelegationKind::kWrite) return std::unexpected(Status::kOpenMode);
  return believed(*held, inode, wanted, context.services.clock.wall_now());
}

Outcome<> take_times(const CompoundContext& context, const Inode& inode, const HeldTimes& times) {
  if (!times.any()) return {};
  InodeUpdate update;
  update.atime = times.access;
  update.mtime = times.modify;
  update.by_holder = true;
  // An access alone is no more durable than state is.
  const CommitKind kind = times.modify ? CommitKind::kNamespace : CommitKind::kState;
  TRY(context.services.names.update(inode.id, update, {}, kind));
  return {};
}

}  // namespace pnfsrdma::mds
