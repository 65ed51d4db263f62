// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/open_operations.h"
#include "shared/nfs4/response.h"

namespace pnfsrdma::nfs4 {

// DELEGPURGE (RFC 8881, 18.5), DELEGRETURN (18.6)
struct DelegationPurgeArguments {
  uint64_t client_id = 0;
};
struct DelegationPurgeResult {};
using DelegationPurgeResponse = Response<DelegationPurgeResult>;

struct DelegationReturnArguments {
  Stateid stateid;
};
struct DelegationReturnResult {};
using DelegationReturnResponse = Response<DelegationReturnResult>;

// WANT_DELEGATION (18.49)
using DelegationClaim =
    xdr::Union<ClaimType, xdr::Arm<xdr::Void, ClaimType::kFileHandle, ClaimType::kDelegatePreviousFileHandle>,
               xdr::Arm<DelegationType, ClaimType::kPrevious>>;
struct WantDelegationArguments {
  uint32_t want = 0;
  DelegationClaim claim;
};
struct WantDelegationResult {
  Delegation delegation;
};
using WantDelegationResponse = Response<WantDelegationResult>;

// GET_DIR_DELEGATION (18.39). NFS4_OK has a second status inside: granted, or not available now.
struct GetDirectoryDelegationArguments {
  bool signal_when_available = false;
  Bitmap notification_types;
  Time child_attributes_delay;
  Time directory_attributes_delay;
  Bitmap child_attributes;
  Bitmap directory_attributes;
};
struct DirectoryDelegation {
  Verifier cookie_verifier{};
  Stateid stateid;
  Bitmap notification;
  Bitmap child_attributes;
  Bitmap directory_attributes;
};
enum class DirectoryDelegationStatus : uint32_t { kOk = 0, kUnavailable = 1 };
constexpr bool xdr_known(DirectoryDelegationStatus status) {
  return status <= DirectoryDelegationStatus::kUnavailable;
}
// The bool: will the server signal when one can be had?
struct GetDirectoryDelegationResult {
  xdr::Union<DirectoryDelegationStatus, xdr::Arm<DirectoryDelegation, DirectoryDelegationStatus::kOk>,
             xdr::Arm<bool, DirectoryDelegationStatus::kUnavailable>>
      outcome;
};
using GetDirectoryDelegationResponse = Response<GetDirectoryDelegationResult>;

}  // namespace pnfsrdma::nfs4
