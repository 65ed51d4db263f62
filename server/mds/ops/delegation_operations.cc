// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/delegation_grant.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/state/delegations.h"

namespace pnfsrdma::mds {

using nfs4::ClaimType;
using nfs4::Status;

// RFC 8881, 18.6
nfs4::DelegationReturnResponse handle(CompoundContext& context,
                                      const nfs4::DelegationReturnArguments& arguments) {
  TRY_ASSIGN(const ObjectHandle handle, context.current_handle());
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(arguments.stateid));
  if (special_stateid(stateid) != SpecialStateid::kNone) return Status::kBadStateid;
  TRY_ASSIGN(DelegationState* const held, context.find_delegation(stateid, handle.inode));
  TRY(context.services.delegations.give_back(*held));
  return Status::kOk;
}

// RFC 8881, 18.49: a read delegation without an OPEN, for those who may read; one to write needs an OPEN. Nothing is
// given later: a want that cannot be met at once is forgotten.
nfs4::WantDelegationResponse handle(CompoundContext& context,
                                    const nfs4::WantDelegationArguments& arguments) {
  constexpr uint32_t kSignals =
      nfs4::kShareAccessWantSignalWhenAvailable | nfs4::kShareAccessWantPushWhenUncontended;
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  TRY_ASSIGN(const ObjectHandle handle, context.current_handle());
  const uint32_t want = arguments.want & ~kSignals;
  if ((want & ~nfs4::kShareAccessWantMask) != 0 || want == nfs4::kShareAccessWantNoPreference ||
      want > nfs4::kShareAccessWantCancel) {
    return Status::kInval;
  }
  const auto* previous = arguments.claim.get_if<ClaimType::kPrevious>();
  if (arguments.claim.is<ClaimType::kDelegatePreviousFileHandle>()) return Status::kNotSupp;
  TRY(context.check_grace(previous != nullptr));
  TRY(context.check_access(*inode, kMayRead));
  nfs4::WantDelegationResult result;
  result.delegation = previous != nullptr
                          ? reclaim_delegation(context, *inode, handle, *previous, {.want = want})
                          : grant_delegation(context, *inode, handle, kShareRead, {.want = want});
  return result;
}

// RFC 8881, 18.39. Nothing is notified, whatever the client would like to hear of: each change by another recalls. A
// directory of which none can be had now is asked for again: nothing is signalled.
nfs4::GetDirectoryDelegationResponse handle(CompoundContext& context,
                                            const nfs4::GetDirectoryDelegationArguments&) {
  using Outcomes = decltype(nfs4::GetDirectoryDelegationResult::outcome);
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  TRY_ASSIGN(const ObjectHandle handle, context.current_handle());
  if (!context.check_access(*directory, kMayRead)) TRY(context.check_access(*directory, kMayExecute));
  const auto granted = grant_directory_delegation(context, *directory, handle);
  if (!granted) {
    return nfs4::GetDirectoryDelegationResult{
        Outcomes::make<nfs4::DirectoryDelegationStatus::kUnavailable>(false)};
  }
  context.set_current_stateid(*granted);
  nfs4::DirectoryDelegation given;
  given.cookie_verifier = Namespace::cookie_verifier(*directory);
  given.stateid = *granted;
  return nfs4::GetDirectoryDelegationResult{
      Outcomes::make<nfs4::DirectoryDelegationStatus::kOk>(std::move(given))};
}

}  // namespace pnfsrdma::mds
