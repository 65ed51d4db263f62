// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/mds/ops/data_operations.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/state/conflicts.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/state_store.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

LayoutStateid layout_stateid(const nfs4::Stateid& stateid) {
  return {stateid.seqid, stateid.other};
}

// An open's stateid or a lock's.
template <typename State>
Status test_state(const CompoundContext& context, const State* state, const nfs4::Stateid& stateid) {
  if (!state || state->client != context.client_id()) return Status::kBadStateid;
  return check_seqid(stateid.seqid, state->seqid);
}

Status test_delegation(const CompoundContext& context, const nfs4::Stateid& stateid) {
  const DelegationState* held = context.services.delegations.table().find(stateid.other);
  if (!held || held->client != context.client_id()) return Status::kBadStateid;
  return held->revoked ? Status::kDelegRevoked : check_seqid(stateid.seqid, DelegationState::kSeqid);
}

Status test_held(const CompoundContext& context, const nfs4::Stateid& stateid) {
  if (kind_of(stateid.other) == StateKind::kLock) {
    return test_state(context, context.services.locks.find(stateid.other), stateid);
  }
  return test_state(context, context.services.opens.find(stateid.other), stateid);
}

Status test(const CompoundContext& context, const nfs4::Stateid& stateid) {
  if (special_stateid(stateid) != SpecialStateid::kNone) return Status::kBadStateid;
  const auto kind = kind_of(stateid.other);
  if (!kind) return Status::kBadStateid;
  if (*kind == StateKind::kLayout) {
    return context.services.layouts.test_stateid(context.client_id(), layout_stateid(stateid));
  }
  if (*kind == StateKind::kDelegation) return test_delegation(context, stateid);
  if (*kind == StateKind::kCopy) return context.services.data.test_copy(context.client_id(), stateid);
  return test_held(context, stateid);
}

Status free_delegation(const CompoundContext& context, const nfs4::Stateid& stateid) {
  const Status tested = test_delegation(context, stateid);
  if (tested == Status::kOk) return Status::kLocksHeld;
  if (tested != Status::kDelegRevoked) return tested;
  Delegations& delegations = context.services.delegations;
  const auto freed = delegations.give_back(*delegations.table().find(stateid.other));
  return freed ? Status::kOk : freed.error();
}

}  // namespace

// RFC 8881, 18.48
nfs4::TestStateidResponse handle(CompoundContext& context, const nfs4::TestStateidArguments& arguments) {
  nfs4::TestStateidResult result;
  result.statuses.reserve(arguments.stateids.size());
  for (const nfs4::Stateid& stateid : arguments.stateids) result.statuses.push_back(test(context, stateid));
  return result;
}

// RFC 8881, 18.38: gives up what was revoked, and the stateid of a lock owner that has nothing locked. What
// is still in force has operations of its own to end it.
nfs4::FreeStateidResponse handle(CompoundContext& context, const nfs4::FreeStateidArguments& arguments) {
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(arguments.stateid));
  if (special_stateid(stateid) != SpecialStateid::kNone) return Status::kBadStateid;
  if (kind_of(stateid.other) == StateKind::kLayout) {
    return context.services.layouts.free_stateid(context.client_id(), layout_stateid(stateid));
  }
  if (kind_of(stateid.other) == StateKind::kDelegation) return free_delegation(context, stateid);
  if (kind_of(stateid.other) == StateKind::kCopy) {
    const Status tested = context.services.data.test_copy(context.client_id(), stateid);
    return tested == Status::kOk ? Status::kLocksHeld : tested;
  }
  const Status live = test_held(context, stateid);
  if (live != Status::kOk) return live;
  LockState* lock = context.services.locks.find(stateid.other);
  if (lock == nullptr || !lock->ranges.empty()) return Status::kLocksHeld;
  TRY(context.services.state_store.erase(*lock));
  context.services.locks.remove(*lock);
  return Status::kOk;
}

}  // namespace pnfsrdma::mds
