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
  result.delegation = previous != nullptr ? reclaim_delegation(context, *inode, handle, *previous, want)
                                          : grant_delegation(context, *inode, handle, kShareRead, want);
  return result;
}

}  // namespace pnfsrdma::mds
