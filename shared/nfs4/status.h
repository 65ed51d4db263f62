// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// nfsstat4: every status of NFSv4.1 (RFC 8881, 15.1), NFSv4.2 (RFC 7862, 11.1) and extended attributes (RFC
// 8276, 8.5).
namespace pnfsrdma::nfs4 {

// X(enumerator, RFC name, number), in the RFC's order.
// clang-format off
#define PNFSRDMA_NFS4_STATUSES(X) \
  X(kOk, "NFS4_OK", 0) \
  X(kPerm, "NFS4ERR_PERM", 1) \
  X(kNoEnt, "NFS4ERR_NOENT", 2) \
  X(kIo, "NFS4ERR_IO", 5) \
  X(kNxIo, "NFS4ERR_NXIO", 6) \
  X(kAccess, "NFS4ERR_ACCESS", 13) \
  X(kExist, "NFS4ERR_EXIST", 17) \
  X(kXDev, "NFS4ERR_XDEV", 18) \
  X(kNotDir, "NFS4ERR_NOTDIR", 20) \
  X(kIsDir, "NFS4ERR_ISDIR", 21) \
  X(kInval, "NFS4ERR_INVAL", 22) \
  X(kFBig, "NFS4ERR_FBIG", 27) \
  X(kNoSpc, "NFS4ERR_NOSPC", 28) \
  X(kRoFs, "NFS4ERR_ROFS", 30) \
  X(kMLink, "NFS4ERR_MLINK", 31) \
  X(kNameTooLong, "NFS4ERR_NAMETOOLONG", 63) \
  X(kNotEmpty, "NFS4ERR_NOTEMPTY", 66) \
  X(kDQuot, "NFS4ERR_DQUOT", 69) \
  X(kStale, "NFS4ERR_STALE", 70) \
  X(kBadHandle, "NFS4ERR_BADHANDLE", 10001) \
  X(kBadCookie, "NFS4ERR_BAD_COOKIE", 10003) \
  X(kNotSupp, "NFS4ERR_NOTSUPP", 10004) \
  X(kTooSmall, "NFS4ERR_TOOSMALL", 10005) \
  X(kServerFault, "NFS4ERR_SERVERFAULT", 10006) \
  X(kBadType, "NFS4ERR_BADTYPE", 10007) \
  X(kDelay, "NFS4ERR_DELAY", 10008) \
  X(kSame, "NFS4ERR_SAME", 10009) \
  X(kDenied, "NFS4ERR_DENIED", 10010) \
  X(kExpired, "NFS4ERR_EXPIRED", 10011) \
  X(kLocked, "NFS4ERR_LOCKED", 10012) \
  X(kGrace, "NFS4ERR_GRACE", 10013) \
  X(kFhExpired, "NFS4ERR_FHEXPIRED", 10014) \
  X(kShareDenied, "NFS4ERR_SHARE_DENIED", 10015) \
  X(kWrongSec, "NFS4ERR_WRONGSEC", 10016) \
  X(kClidInuse, "NFS4ERR_CLID_INUSE", 10017) \
  X(kResource, "NFS4ERR_RESOURCE", 10018) \
  X(kMoved, "NFS4ERR_MOVED", 10019) \
  X(kNoFileHandle, "NFS4ERR_NOFILEHANDLE", 10020) \
  X(kMinorVersMismatch, "NFS4ERR_MINOR_VERS_MISMATCH", 10021) \
  X(kStaleClientId, "NFS4ERR_STALE_CLIENTID", 10022) \
  X(kStaleStateid, "NFS4ERR_STALE_STATEID", 10023) \
  X(kOldStateid, "NFS4ERR_OLD_STATEID", 10024) \
  X(kBadStateid, "NFS4ERR_BAD_STATEID", 10025) \
  X(kBadSeqid, "NFS4ERR_BAD_SEQID", 10026) \
  X(kNotSame, "NFS4ERR_NOT_SAME", 10027) \
  X(kLockRange, "NFS4ERR_LOCK_RANGE", 10028) \
  X(kSymlink, "NFS4ERR_SYMLINK", 10029) \
  X(kRestoreFh, "NFS4ERR_RESTOREFH", 10030) \
  X(kLeaseMoved, "NFS4ERR_LEASE_MOVED", 10031) \
  X(kAttrNotSupp, "NFS4ERR_ATTRNOTSUPP", 10032) \
  X(kNoGrace, "NFS4ERR_NO_GRACE", 10033) \
  X(kReclaimBad, "NFS4ERR_RECLAIM_BAD", 10034) \
  X(kReclaimConflict, "NFS4ERR_RECLAIM_CONFLICT", 10035) \
  X(kBadXdr, "NFS4ERR_BADXDR", 10036) \
  X(kLocksHeld, "NFS4ERR_LOCKS_HELD", 10037) \
  X(kOpenMode, "NFS4ERR_OPENMODE", 10038) \
  X(kBadOwner, "NFS4ERR_BADOWNER", 10039) \
  X(kBadChar, "NFS4ERR_BADCHAR", 10040) \
  X(kBadName, "NFS4ERR_BADNAME", 10041) \
  X(kBadRange, "NFS4ERR_BAD_RANGE", 10042) \
  X(kLockNotSupp, "NFS4ERR_LOCK_NOTSUPP", 10043) \
  X(kOpIllegal, "NFS4ERR_OP_ILLEGAL", 10044) \
  X(kDeadlock, "NFS4ERR_DEADLOCK", 10045) \
  X(kFileOpen, "NFS4ERR_FILE_OPEN", 10046) \
  X(kAdminRevoked, "NFS4ERR_ADMIN_REVOKED", 10047) \
  X(kCbPathDown, "NFS4ERR_CB_PATH_DOWN", 10048) \
  X(kBadIoMode, "NFS4ERR_BADIOMODE", 10049) \
  X(kBadLayout, "NFS4ERR_BADLAYOUT", 10050) \
  X(kBadSessionDigest, "NFS4ERR_BAD_SESSION_DIGEST", 10051) \
  X(kBadSession, "NFS4ERR_BADSESSION", 10052) \
  X(kBadSlot, "NFS4ERR_BADSLOT", 10053) \
  X(kCompleteAlready, "NFS4ERR_COMPLETE_ALREADY", 10054) \
  X(kConnNotBoundToSession, "NFS4ERR_CONN_NOT_BOUND_TO_SESSION", 10055) \
  X(kDelegAlreadyWanted, "NFS4ERR_DELEG_ALREADY_WANTED", 10056) \
  X(kBackChanBusy, "NFS4ERR_BACK_CHAN_BUSY", 10057) \
  X(kLayoutTryLater, "NFS4ERR_LAYOUTTRYLATER", 10058) \
  X(kLayoutUnavailable, "NFS4ERR_LAYOUTUNAVAILABLE", 10059) \
  X(kNomatchingLayout, "NFS4ERR_NOMATCHING_LAYOUT", 10060) \
  X(kRecallConflict, "NFS4ERR_RECALLCONFLICT", 10061) \
  X(kUnknownLayoutType, "NFS4ERR_UNKNOWN_LAYOUTTYPE", 10062) \
  X(kSeqMisordered, "NFS4ERR_SEQ_MISORDERED", 10063) \
  X(kSequencePos, "NFS4ERR_SEQUENCE_POS", 10064) \
  X(kReqTooBig, "NFS4ERR_REQ_TOO_BIG", 10065) \
  X(kRepTooBig, "NFS4ERR_REP_TOO_BIG", 10066) \
  X(kRepTooBigToCache, "NFS4ERR_REP_TOO_BIG_TO_CACHE", 10067) \
  X(kRetryUncachedRep, "NFS4ERR_RETRY_UNCACHED_REP", 10068) \
  X(kUnsafeCompound, "NFS4ERR_UNSAFE_COMPOUND", 10069) \
  X(kTooManyOps, "NFS4ERR_TOO_MANY_OPS", 10070) \
  X(kOpNotInSession, "NFS4ERR_OP_NOT_IN_SESSION", 10071) \
  X(kHashAlgUnsupp, "NFS4ERR_HASH_ALG_UNSUPP", 10072) \
  X(kClientIdBusy, "NFS4ERR_CLIENTID_BUSY", 10074) \
  X(kPnfsIoHole, "NFS4ERR_PNFS_IO_HOLE", 10075) \
  X(kSeqFalseRetry, "NFS4ERR_SEQ_FALSE_RETRY", 10076) \
  X(kBadHighSlot, "NFS4ERR_BAD_HIGH_SLOT", 10077) \
  X(kDeadSession, "NFS4ERR_DEADSESSION", 10078) \
  X(kEncrAlgUnsupp, "NFS4ERR_ENCR_ALG_UNSUPP", 10079) \
  X(kPnfsNoLayout, "NFS4ERR_PNFS_NO_LAYOUT", 10080) \
  X(kNotOnlyOp, "NFS4ERR_NOT_ONLY_OP", 10081) \
  X(kWrongCred, "NFS4ERR_WRONG_CRED", 10082) \
  X(kWrongType, "NFS4ERR_WRONG_TYPE", 10083) \
  X(kDirDelegUnavail, "NFS4ERR_DIRDELEG_UNAVAIL", 10084) \
  X(kRejectDeleg, "NFS4ERR_REJECT_DELEG", 10085) \
  X(kReturnConflict, "NFS4ERR_RETURNCONFLICT", 10086) \
  X(kDelegRevoked, "NFS4ERR_DELEG_REVOKED", 10087) \
  X(kPartnerNotSupp, "NFS4ERR_PARTNER_NOTSUPP", 10088) \
  X(kPartnerNoAuth, "NFS4ERR_PARTNER_NO_AUTH", 10089) \
  X(kUnionNotSupp, "NFS4ERR_UNION_NOTSUPP", 10090) \
  X(kOffloadDenied, "NFS4ERR_OFFLOAD_DENIED", 10091) \
  X(kWrongLfs, "NFS4ERR_WRONG_LFS", 10092) \
  X(kBadLabel, "NFS4ERR_BADLABEL", 10093) \
  X(kOffloadNoReqs, "NFS4ERR_OFFLOAD_NO_REQS", 10094) \
  X(kNoXattr, "NFS4ERR_NOXATTR", 10095) \
  X(kXattr2Big, "NFS4ERR_XATTR2BIG", 10096)
// clang-format on

enum class Status : uint32_t {
#define PNFSRDMA_STATUS(enumerator, name, number) enumerator = number,
  PNFSRDMA_NFS4_STATUSES(PNFSRDMA_STATUS)
#undef PNFSRDMA_STATUS
};

constexpr bool xdr_known(Status status) {
  switch (status) {
#define PNFSRDMA_STATUS(enumerator, name, number) case Status::enumerator:
    PNFSRDMA_NFS4_STATUSES(PNFSRDMA_STATUS)
#undef PNFSRDMA_STATUS
    return true;
  }
  return false;
}

// "NFS4ERR_DELAY"; "NFS4ERR_UNKNOWN" for a number that is none.
const char* to_string(Status status);

}  // namespace pnfsrdma::nfs4
