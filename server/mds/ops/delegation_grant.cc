// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/delegation_grant.h"

#include <algorithm>

#include "server/mds/ops/handle_keys.h"
#include "server/mds/state/conflicts.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/grace.h"
#include "server/mds/state/server_limits.h"

namespace pnfsrdma::mds {

using nfs4::WhyNoDelegation;

namespace {

using Granted = std::expected<nfs4::Stateid, WhyNoDelegation>;

bool can_be_called(const Client& client) {
  return std::ranges::any_of(client.sessions,
                             [](Session* session) { return session->back_connection() != nullptr; });
}

// Somebody else may change the file without asking: by an open, or by a layout, which outlives its open.
bool is_written_by_others(const CompoundContext& context, const Inode& inode) {
  return context.services.opens.is_written_by_others(inode.id, context.client_id()) ||
         context.services.layouts.may_be_written_by_others(inode.id, context.client_id());
}

Delegations::Request request_of(const CompoundContext& context, const Inode& inode,
                                const ObjectHandle& handle) {
  return {.client = context.client_id(),
          .inode = inode.id,
          .handle = context.services.handles.encode(handle),
          .other = make_stateid_other(StateKind::kDelegation, context.services.clock.now(),
                                      context.services.random),
          .of_client_max = context.services.limits.delegations_per_client_max};
}

Granted grant(CompoundContext& context, const Inode& inode, const ObjectHandle& handle, uint32_t access,
              uint32_t want) {
  if (want == nfs4::kShareAccessWantNoDelegation) return std::unexpected(WhyNoDelegation::kNotWanted);
  if (want == nfs4::kShareAccessWantCancel) return std::unexpected(WhyNoDelegation::kCancelled);
  // What is in a snapshot nobody changes; but it goes with that, and nothing is recalled then.
  if (!context.services.limits.delegations || snapshot_of(inode.id) != 0)
    return std::unexpected(WhyNoDelegation::kNotSupportedFileType);
  if (want == nfs4::kShareAccessWantWriteDelegation)
    return std::unexpected(WhyNoDelegation::kWriteNotSupportedFileType);
  // Who has just opened it for writing is about to change what he would cache.
  if ((access & kShareWrite) != 0) return std::unexpected(WhyNoDelegation::kContention);
  if (context.in_grace() || !can_be_called(*context.client))
    return std::unexpected(WhyNoDelegation::kResource);
  if (is_written_by_others(context, inode)) return std::unexpected(WhyNoDelegation::kContention);
  return context.services.delegations.grant(request_of(context, inode, handle));
}

Granted reclaim(CompoundContext& context, const Inode& inode, const ObjectHandle& handle,
                nfs4::DelegationType type) {
  const bool held = context.services.grace.may_reclaim_delegation(context.client->owner, inode.id);
  if (type != nfs4::DelegationType::kRead || !held || !context.services.limits.delegations ||
      !can_be_called(*context.client)) {
    return std::unexpected(WhyNoDelegation::kResource);
  }
  if (context.services.opens.is_written_by_others(inode.id, context.client_id()))
    return std::unexpected(WhyNoDelegation::kContention);
  return context.services.delegations.reclaim(request_of(context, inode, handle));
}

// The entry that says who may open the file without asking names nobody: ACCESS does (RFC 8881, 10.4).
nfs4::Delegation answer(const Granted& granted, uint32_t want) {
  if (granted)
    return nfs4::Delegation::make<nfs4::DelegationType::kRead>(nfs4::ReadDelegation{.stateid = *granted});
  if (want == nfs4::kShareAccessWantNoPreference) return {};
  return nfs4::Delegation::make<nfs4::DelegationType::kNoneExtended>(nfs4::NoDelegation::of(granted.error()));
}

}  // namespace

nfs4::Delegation grant_delegation(CompoundContext& context, const Inode& inode, const ObjectHandle& handle,
                                  uint32_t access, uint32_t want) {
  return answer(grant(context, inode, handle, access, want), want);
}

nfs4::Delegation reclaim_delegation(CompoundContext& context, const Inode& inode, const ObjectHandle& handle,
                                    nfs4::DelegationType type, uint32_t want) {
  return answer(reclaim(context, inode, handle, type), want);
}

}  // namespace pnfsrdma::mds
