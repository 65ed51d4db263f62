// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/attributes.h"
#include "shared/nfs4/response.h"

// OPEN and its relatives, CLOSE, and the delegations an OPEN can bring.
namespace pnfsrdma::nfs4 {

// OpenArguments::share_access, share_deny
inline constexpr uint32_t kShareAccessRead = 1;
inline constexpr uint32_t kShareAccessWrite = 2;
inline constexpr uint32_t kShareAccessBoth = 3;
inline constexpr uint32_t kShareDenyNone = 0;
inline constexpr uint32_t kShareDenyRead = 1;
inline constexpr uint32_t kShareDenyWrite = 2;
inline constexpr uint32_t kShareDenyBoth = 3;
// What delegation the client would like, in share_access.
inline constexpr uint32_t kShareAccessWantMask = 0xFF00;
inline constexpr uint32_t kShareAccessWantNoPreference = 0x0000;
inline constexpr uint32_t kShareAccessWantReadDelegation = 0x0100;
inline constexpr uint32_t kShareAccessWantWriteDelegation = 0x0200;
inline constexpr uint32_t kShareAccessWantAnyDelegation = 0x0300;
inline constexpr uint32_t kShareAccessWantNoDelegation = 0x0400;
inline constexpr uint32_t kShareAccessWantCancel = 0x0500;
inline constexpr uint32_t kShareAccessWantSignalWhenAvailable = 0x10000;
inline constexpr uint32_t kShareAccessWantPushWhenUncontended = 0x20000;
inline constexpr uint32_t kShareAccessWantDelegatedTimes = 0x100000;    // RFC 9754, 5.2
inline constexpr uint32_t kShareAccessWantOpenOrDelegation = 0x200000;  // RFC 9754, 4: not both
// The same in OpenSupport::share_access_want, which numbers them (open_args_share_access_want4, RFC 9754, 3.1).
enum class OpenWant : uint32_t {
  kAnyDelegation = 3,
  kNoDelegation = 4,
  kCancel = 5,
  kSignalWhenAvailable = 17,
  kPushWhenUncontended = 18,
  kDelegatedTimes = 20,
  kOpenOrDelegation = 21,
};

// OpenResult::flags
inline constexpr uint32_t kOpenResultConfirm = 0x02;  // NFSv4.0 only
inline constexpr uint32_t kOpenResultLockTypePosix = 0x04;
inline constexpr uint32_t kOpenResultPreserveUnlinked = 0x08;
inline constexpr uint32_t kOpenResultNoOpenStateid = 0x10;  // RFC 9754, 4: there is a delegation only
inline constexpr uint32_t kOpenResultMayNotifyLock = 0x20;

// createhow4 (RFC 8881, 18.16.1)
enum class CreateMode : uint32_t { kUnchecked = 0, kGuarded = 1, kExclusive = 2, kExclusive41 = 3 };
constexpr bool xdr_known(CreateMode mode) {
  return mode <= CreateMode::kExclusive41;
}
struct ExclusiveCreate {
  Verifier verifier{};
  Attributes attributes;
};
using CreateHow = xdr::Union<CreateMode, xdr::Arm<Attributes, CreateMode::kUnchecked, CreateMode::kGuarded>,
                             xdr::Arm<Verifier, CreateMode::kExclusive>,
                             xdr::Arm<ExclusiveCreate, CreateMode::kExclusive41>>;

enum class OpenType : uint32_t { kNoCreate = 0, kCreate = 1 };
constexpr bool xdr_known(OpenType type) {
  return type <= OpenType::kCreate;
}
using OpenHow =
    xdr::Union<OpenType, xdr::Arm<xdr::Void, OpenType::kNoCreate>, xdr::Arm<CreateHow, OpenType::kCreate>>;

enum class DelegationType : uint32_t {
  kNone = 0,
  kRead = 1,
  kWrite = 2,
  kNoneExtended = 3,
  kReadAttributes = 4,   // RFC 9754
  kWriteAttributes = 5,  // RFC 9754
};
constexpr bool xdr_known(DelegationType type) {
  return type <= DelegationType::kWriteAttributes;
}

// open_claim4: how the file is named.
enum class ClaimType : uint32_t {
  kNull = 0,
  kPrevious = 1,
  kDelegateCurrent = 2,
  kDelegatePrevious = 3,
  kFileHandle = 4,
  kDelegateCurrentFileHandle = 5,
  kDelegatePreviousFileHandle = 6,
};
constexpr bool xdr_known(ClaimType type) {
  return type <= ClaimType::kDelegatePreviousFileHandle;
}
struct ClaimDelegateCurrent {
  Stateid delegate_stateid;
  Component file;
};
using OpenClaim =
    xdr::Union<ClaimType, xdr::Arm<Component, ClaimType::kNull, ClaimType::kDelegatePrevious>,
               xdr::Arm<DelegationType, ClaimType::kPrevious>,
               xdr::Arm<ClaimDelegateCurrent, ClaimType::kDelegateCurrent>,
               xdr::Arm<xdr::Void, ClaimType::kFileHandle, ClaimType::kDelegatePreviousFileHandle>,
               xdr::Arm<Stateid, ClaimType::kDelegateCurrentFileHandle>>;

// open_delegation4
enum class LimitBy : uint32_t { kSize = 1, kBlocks = 2 };
constexpr bool xdr_known(LimitBy limit) {
  return limit == LimitBy::kSize || limit == LimitBy::kBlocks;
}
struct ModifiedLimit {
  uint32_t block_count = 0;
  uint32_t bytes_per_block = 0;
};
using SpaceLimit =
    xdr::Union<LimitBy, xdr::Arm<uint64_t, LimitBy::kSize>, xdr::Arm<ModifiedLimit, LimitBy::kBlocks>>;
struct ReadDelegation {
  Stateid stateid;
  bool recall = false;
  AccessControlEntry permissions;
};
struct WriteDelegation {
  Stateid stateid;
  bool recall = false;
  SpaceLimit space_limit;
  AccessControlEntry permissions;
};
enum class WhyNoDelegation : uint32_t {
  kNotWanted = 0,
  kContention = 1,
  kResource = 2,
  kNotSupportedFileType = 3,
  kWriteNotSupportedFileType = 4,
  kNotSupportedUpgrade = 5,
  kNotSupportedDowngrade = 6,
  kCancelled = 7,
  kIsDirectory = 8,
};
constexpr bool xdr_known(WhyNoDelegation why) {
  return why <= WhyNoDelegation::kIsDirectory;
}
// The bool: will the server push the delegation, or signal that one can be had, later?
using NoDelegation = xdr::Union<WhyNoDelegation, xdr::Arm<xdr::Void, WhyNoDelegation::kNotWanted>,
                                xdr::Arm<bool, WhyNoDelegation::kContention, WhyNoDelegation::kResource>,
                                xdr::Default<xdr::Void>>;
using Delegation =
    xdr::Union<DelegationType, xdr::Arm<xdr::Void, DelegationType::kNone>,
               xdr::Arm<ReadDelegation, DelegationType::kRead, DelegationType::kReadAttributes>,
               xdr::Arm<WriteDelegation, DelegationType::kWrite, DelegationType::kWriteAttributes>,
               xdr::Arm<NoDelegation, DelegationType::kNoneExtended>>;

// OPEN (18.16). `seqid` is for NFSv4.0; 4.1 ignores it.
struct OpenArguments {
  uint32_t seqid = 0;
  uint32_t share_access = 0;
  uint32_t share_deny = 0;
  StateOwner owner;
  OpenHow how;
  OpenClaim claim;
};
struct OpenResult {
  Stateid stateid;
  ChangeInfo change;
  uint32_t flags = 0;
  Bitmap attributes_set;
  Delegation delegation;
};
using OpenResponse = Response<OpenResult>;

// OPEN_DOWNGRADE (18.18)
struct OpenDowngradeArguments {
  Stateid open_stateid;
  uint32_t seqid = 0;
  uint32_t share_access = 0;
  uint32_t share_deny = 0;
};
struct OpenDowngradeResult {
  Stateid open_stateid;
};
using OpenDowngradeResponse = Response<OpenDowngradeResult>;

// CLOSE (18.2)
struct CloseArguments {
  uint32_t seqid = 0;
  Stateid open_stateid;
};
struct CloseResult {
  Stateid open_stateid;
};
using CloseResponse = Response<CloseResult>;

}  // namespace pnfsrdma::nfs4
