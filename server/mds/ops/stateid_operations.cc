// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/mds/layout/conflicts.h"
#include "server/mds/ops/handlers.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

LayoutStateid layout_stateid(const nfs4::Stateid& stateid) {
  return {stateid.seqid, stateid.other};
}

Status test_open(const CompoundContext& context, const nfs4::Stateid& stateid) {
  for (const RevokedState& revoked : context.client->revoked) {
    if (revoked.other == stateid.other) return revoked.status;
  }
  const OpenState* open = context.services.opens.find(stateid.other);
  if (!open || open->client != context.client_id()) return Status::kBadStateid;
  return check_seqid(stateid.seqid, open->seqid);
}

Status test(const CompoundContext& context, const nfs4::Stateid& stateid) {
  if (special_stateid(stateid) != SpecialStateid::kNone) return Status::kBadStateid;
  const auto kind = kind_of(stateid.other);
  if (!kind) return Status::kBadStateid;
  if (*kind == StateKind::kLayout) {
    return context.services.layouts.test_stateid(context.client_id(), layout_stateid(stateid));
  }
  return test_open(context, stateid);
}

}  // namespace

// RFC 8881, 18.48
nfs4::TestStateidResponse handle(CompoundContext& context, const nfs4::TestStateidArguments& arguments) {
  nfs4::TestStateidResult result;
  result.statuses.reserve(arguments.stateids.size());
  for (const nfs4::Stateid& stateid : arguments.stateids) result.statuses.push_back(test(context, stateid));
  return result;
}

// RFC 8881, 18.38: gives up what was revoked. What is still in force has operations of its own to end it.
nfs4::FreeStateidResponse handle(CompoundContext& context, const nfs4::FreeStateidArguments& arguments) {
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(arguments.stateid));
  if (special_stateid(stateid) != SpecialStateid::kNone) return Status::kBadStateid;
  if (kind_of(stateid.other) == StateKind::kLayout) {
    return context.services.layouts.free_stateid(context.client_id(), layout_stateid(stateid));
  }
  auto& revoked = context.client->revoked;
  const auto found = std::ranges::find(revoked, stateid.other, &RevokedState::other);
  if (found != revoked.end()) {
    revoked.erase(found);
    return Status::kOk;
  }
  const Status live = test_open(context, stateid);
  return live == Status::kOk ? Status::kLocksHeld : live;
}

}  // namespace pnfsrdma::mds
