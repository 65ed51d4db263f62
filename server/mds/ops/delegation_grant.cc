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

using Granted = std::expected<const DelegationState*, WhyNoDelegation>;

bool can_be_called(const Client& client) {
  return std::ranges::any_of(client.sessions,
                             [](Session* session) { return session->back_connection() != nullptr; });
}

// Somebody else may change the file without asking: by an open, or by a layout, which outlives its open.
bool is_written_by_others(const CompoundContext& context, const Inode& inode) {
  return context.services.opens.is_written_by_others(inode.id, context.client_id()) ||
         context.services.layouts.may_be_written_by_others(inode.id, context.client_id());
}

// Nobody else may have the file open, or do anything with it by a layout. (A lock has an open.)
bool is_used_by_others(const CompoundContext& context, const Inode& inode) {
  return context.services.opens.is_open_by_others(inode.id, context.client_id()) ||
         context.services.layouts.may_be_used_by_others(inode.id, context.client_id());
}

// Who holds one opens the file by this handle, without us: it must be the one that he knows, and not end by itself. Its
// end is told to those who hold one when exports change (ended_handles.h).
bool has_lasting_handle(const CompoundContext& context, const ObjectHandle& handle) {
  return !handle.old && !context.exports_changed();
}

// What there is to get for an open like this.
std::expected<DelegationKind, WhyNoDelegation> kind_for(uint32_t access, uint32_t want) {
  const bool wants_to_write =
      want == nfs4::kShareAccessWantWriteDelegation || want == nfs4::kShareAccessWantAnyDelegation;
  // Its holder reads and writes by it, whoever of his users asks: he may do both.
  if (access == kShareBoth && wants_to_write) return DelegationKind::kWrite;
  if (want == nfs4::kShareAccessWantWriteDelegation) return std::unexpected(WhyNoDelegation::kResource);
  // Who has just opened it for writing is about to change what he would cache.
  if ((access & kShareWrite) != 0) return std::unexpected(WhyNoDelegation::kContention);
  return DelegationKind::kRead;
}

Delegations::Request request_of(const CompoundContext& context, const Inode& inode,
                                const ObjectHandle& handle, DelegationKind kind, const DelegationWish& wish) {
  // This operation may have changed it.
  const auto now = context.services.names.get(inode.id);
  const bool takes_place = wish.instead_of != StateidOther{};
  // Who may not tell them here keeps none.
  const bool keeps_times = wish.times && now && context.check_writable();
  return {.client = context.client_id(),
          .inode = inode.id,
          .kind = kind,
          .change = now ? std::optional((*now)->change) : std::nullopt,
          .mtime = keeps_times ? std::optional((*now)->mtime) : std::nullopt,
          .handle = context.services.handles.encode(handle),
          .other = takes_place ? with_kind(StateKind::kDelegation, wish.instead_of)
                               : make_stateid_other(StateKind::kDelegation, context.services.clock.now(),
                                                    context.services.random),
          .of_client_max = context.services.limits.delegations_per_client_max};
}

const DelegationState* state_of(const CompoundContext& context, const nfs4::Stateid& stateid) {
  return context.services.delegations.table().find(stateid.other);
}

Granted grant(CompoundContext& context, const Inode& inode, const ObjectHandle& handle, uint32_t access,
              const DelegationWish& wish) {
  const uint32_t want = wish.want;
  if (want == nfs4::kShareAccessWantNoDelegation) return std::unexpected(WhyNoDelegation::kNotWanted);
  if (want == nfs4::kShareAccessWantCancel) return std::unexpected(WhyNoDelegation::kCancelled);
  // What is in a snapshot nobody changes; but it goes with that, and nothing is recalled then.
  if (!context.services.limits.delegations || snapshot_of(inode.id) != 0)
    return std::unexpected(WhyNoDelegation::kNotSupportedFileType);
  TRY_ASSIGN(const DelegationKind kind, kind_for(access, want));
  if (context.in_grace() || !can_be_called(*context.client) || !has_lasting_handle(context, handle))
    return std::unexpected(WhyNoDelegation::kResource);
  const bool conflicts = kind == DelegationKind::kWrite ? is_used_by_others(context, inode)
                                                        : is_written_by_others(context, inode);
  if (conflicts) return std::unexpected(WhyNoDelegation::kContention);
  TRY_ASSIGN(const nfs4::Stateid stateid,
             context.services.delegations.grant(request_of(context, inode, handle, kind, wish)));
  return state_of(context, stateid);
}

Granted reclaim(CompoundContext& context, const Inode& inode, const ObjectHandle& handle,
                nfs4::DelegationType type, const DelegationWish& wish) {
  using nfs4::DelegationType;
  const bool writes = type == DelegationType::kWrite || type == DelegationType::kWriteAttributes;
  const bool reads = type == DelegationType::kRead || type == DelegationType::kReadAttributes;
  const DelegationKind kind = writes ? DelegationKind::kWrite : DelegationKind::kRead;
  const bool held = context.services.grace.may_reclaim_delegation(context.client->owner, inode.id, kind);
  if ((!writes && !reads) || !held || !context.services.limits.delegations ||
      !can_be_called(*context.client) || !has_lasting_handle(context, handle)) {
    return std::unexpected(WhyNoDelegation::kResource);
  }
  const OpenTable& opens = context.services.opens;
  if (writes ? opens.is_open_by_others(inode.id, context.client_id())
             : opens.is_written_by_others(inode.id, context.client_id())) {
    return std::unexpected(WhyNoDelegation::kContention);
  }
  TRY_ASSIGN(const nfs4::Stateid stateid,
             context.services.delegations.reclaim(request_of(context, inode, handle, kind, wish)));
  return state_of(context, stateid);
}

nfs4::Delegation answer(const Granted& granted, const DelegationWish& wish) {
  if (granted) return given_delegation(**granted, wish.times);
  if (wish.want == nfs4::kShareAccessWantNoPreference) return {};
  return nfs4::Delegation::make<nfs4::DelegationType::kNoneExtended>(nfs4::NoDelegation::of(granted.error()));
}

}  // namespace

// The entry that says who may open the file without asking names nobody: ACCESS does (RFC 8881, 10.4). No space is kept
// for what a holder has not written yet: he writes it before he closes the file, as without a delegation.
nfs4::Delegation given_delegation(const DelegationState& held, bool times) {
  using nfs4::DelegationType;
  const bool keeps_times = times && held.keeps_times;
  if (held.kind == DelegationKind::kWrite) {
    nfs4::WriteDelegation given{.stateid = held.stateid(),
                                .space_limit = nfs4::SpaceLimit::make<nfs4::LimitBy::kSize>(0)};
    return keeps_times ? nfs4::Delegation::make<DelegationType::kWriteAttributes>(std::move(given))
                       : nfs4::Delegation::make<DelegationType::kWrite>(std::move(given));
  }
  nfs4::ReadDelegation given{.stateid = held.stateid()};
  return keeps_times ? nfs4::Delegation::make<DelegationType::kReadAttributes>(std::move(given))
                     : nfs4::Delegation::make<DelegationType::kRead>(std::move(given));
}

const nfs4::Stateid* stateid_of(const nfs4::Delegation& delegation) {
  using nfs4::DelegationType;
  if (const auto* read = delegation.get_if<DelegationType::kRead>()) return &read->stateid;
  if (const auto* read = delegation.get_if<DelegationType::kReadAttributes>()) return &read->stateid;
  if (const auto* write = delegation.get_if<DelegationType::kWrite>()) return &write->stateid;
  if (const auto* write = delegation.get_if<DelegationType::kWriteAttributes>()) return &write->stateid;
  return nullptr;
}

nfs4::Delegation grant_delegation(CompoundContext& context, const Inode& inode, const ObjectHandle& handle,
                                  uint32_t access, const DelegationWish& wish) {
  return answer(grant(context, inode, handle, access, wish), wish);
}

std::expected<nfs4::Stateid, WhyNoDelegation> grant_directory_delegation(CompoundContext& context,
                                                                         const Inode& directory,
                                                                         const ObjectHandle& handle) {
  // The pseudo file system changes with the exports, and a snapshot goes as a whole: neither recalls.
  if (!context.services.limits.delegations || snapshot_of(directory.id) != 0 ||
      handle.export_id == Exports::kPseudoId) {
    return std::unexpected(WhyNoDelegation::kNotSupportedFileType);
  }
  if (context.in_grace() || !can_be_called(*context.client) || !has_lasting_handle(context, handle))
    return std::unexpected(WhyNoDelegation::kResource);
  return context.services.delegations.grant(
      request_of(context, directory, handle, DelegationKind::kRead, {}));
}

nfs4::Delegation reclaim_delegation(CompoundContext& context, const Inode& inode, const ObjectHandle& handle,
                                    nfs4::DelegationType type, const DelegationWish& wish) {
  return answer(reclaim(context, inode, handle, type, wish), wish);
}

}  // namespace pnfsrdma::mds
