// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

// THE tables of operations: their numbers, names and minor versions. Everything that has to know all
// operations is made from them. Light: no argument types in here.
namespace pnfsrdma::nfs4 {

// X(Name, number, RFC name, first minor version, last minor version). `Name` has NameArguments, NameResult
// and NameResponse. RFC 8881, 17; RFC 7862, 14; RFC 8276, 8.3. The end of the range of those from NFSv4.0
// that 4.1 forbids is 0; one outside its minor versions is NFS4ERR_NOTSUPP if it is older, NFS4ERR_OP_ILLEGAL
// if it is newer.
// clang-format off
#define PNFSRDMA_NFS4_OPERATIONS(X) \
  X(Access, 3, "ACCESS", 0, 2) \
  X(Close, 4, "CLOSE", 0, 2) \
  X(Commit, 5, "COMMIT", 0, 2) \
  X(Create, 6, "CREATE", 0, 2) \
  X(DelegationPurge, 7, "DELEGPURGE", 0, 2) \
  X(DelegationReturn, 8, "DELEGRETURN", 0, 2) \
  X(GetAttributes, 9, "GETATTR", 0, 2) \
  X(GetFileHandle, 10, "GETFH", 0, 2) \
  X(Link, 11, "LINK", 0, 2) \
  X(Lock, 12, "LOCK", 0, 2) \
  X(LockTest, 13, "LOCKT", 0, 2) \
  X(Unlock, 14, "LOCKU", 0, 2) \
  X(Lookup, 15, "LOOKUP", 0, 2) \
  X(LookupParent, 16, "LOOKUPP", 0, 2) \
  X(NegatedVerify, 17, "NVERIFY", 0, 2) \
  X(Open, 18, "OPEN", 0, 2) \
  X(OpenAttributeDirectory, 19, "OPENATTR", 0, 2) \
  X(OpenConfirm, 20, "OPEN_CONFIRM", 0, 0) \
  X(OpenDowngrade, 21, "OPEN_DOWNGRADE", 0, 2) \
  X(PutFileHandle, 22, "PUTFH", 0, 2) \
  X(PutPublicFileHandle, 23, "PUTPUBFH", 0, 2) \
  X(PutRootFileHandle, 24, "PUTROOTFH", 0, 2) \
  X(Read, 25, "READ", 0, 2) \
  X(ReadDirectory, 26, "READDIR", 0, 2) \
  X(ReadLink, 27, "READLINK", 0, 2) \
  X(Remove, 28, "REMOVE", 0, 2) \
  X(Rename, 29, "RENAME", 0, 2) \
  X(Renew, 30, "RENEW", 0, 0) \
  X(RestoreFileHandle, 31, "RESTOREFH", 0, 2) \
  X(SaveFileHandle, 32, "SAVEFH", 0, 2) \
  X(SecurityInfo, 33, "SECINFO", 0, 2) \
  X(SetAttributes, 34, "SETATTR", 0, 2) \
  X(SetClientId, 35, "SETCLIENTID", 0, 0) \
  X(SetClientIdConfirm, 36, "SETCLIENTID_CONFIRM", 0, 0) \
  X(Verify, 37, "VERIFY", 0, 2) \
  X(Write, 38, "WRITE", 0, 2) \
  X(ReleaseLockOwner, 39, "RELEASE_LOCKOWNER", 0, 0) \
  X(BackchannelControl, 40, "BACKCHANNEL_CTL", 1, 2) \
  X(BindConnectionToSession, 41, "BIND_CONN_TO_SESSION", 1, 2) \
  X(ExchangeId, 42, "EXCHANGE_ID", 1, 2) \
  X(CreateSession, 43, "CREATE_SESSION", 1, 2) \
  X(DestroySession, 44, "DESTROY_SESSION", 1, 2) \
  X(FreeStateid, 45, "FREE_STATEID", 1, 2) \
  X(GetDirectoryDelegation, 46, "GET_DIR_DELEGATION", 1, 2) \
  X(GetDeviceInfo, 47, "GETDEVICEINFO", 1, 2) \
  X(GetDeviceList, 48, "GETDEVICELIST", 1, 1) \
  X(LayoutCommit, 49, "LAYOUTCOMMIT", 1, 2) \
  X(LayoutGet, 50, "LAYOUTGET", 1, 2) \
  X(LayoutReturn, 51, "LAYOUTRETURN", 1, 2) \
  X(SecurityInfoNoName, 52, "SECINFO_NO_NAME", 1, 2) \
  X(Sequence, 53, "SEQUENCE", 1, 2) \
  X(SetSsv, 54, "SET_SSV", 1, 2) \
  X(TestStateid, 55, "TEST_STATEID", 1, 2) \
  X(WantDelegation, 56, "WANT_DELEGATION", 1, 2) \
  X(DestroyClientId, 57, "DESTROY_CLIENTID", 1, 2) \
  X(ReclaimComplete, 58, "RECLAIM_COMPLETE", 1, 2) \
  X(Allocate, 59, "ALLOCATE", 2, 2) \
  X(Copy, 60, "COPY", 2, 2) \
  X(CopyNotify, 61, "COPY_NOTIFY", 2, 2) \
  X(Deallocate, 62, "DEALLOCATE", 2, 2) \
  X(IoAdvise, 63, "IO_ADVISE", 2, 2) \
  X(LayoutError, 64, "LAYOUTERROR", 2, 2) \
  X(LayoutStatistics, 65, "LAYOUTSTATS", 2, 2) \
  X(OffloadCancel, 66, "OFFLOAD_CANCEL", 2, 2) \
  X(OffloadStatus, 67, "OFFLOAD_STATUS", 2, 2) \
  X(ReadPlus, 68, "READ_PLUS", 2, 2) \
  X(Seek, 69, "SEEK", 2, 2) \
  X(WriteSame, 70, "WRITE_SAME", 2, 2) \
  X(Clone, 71, "CLONE", 2, 2) \
  X(GetXattr, 72, "GETXATTR", 2, 2) \
  X(SetXattr, 73, "SETXATTR", 2, 2) \
  X(ListXattrs, 74, "LISTXATTRS", 2, 2) \
  X(RemoveXattr, 75, "REMOVEXATTR", 2, 2) \
  X(Illegal, 10044, "ILLEGAL", 0, 2)

// The same for callbacks (RFC 8881, 20; RFC 7862, 16).
#define PNFSRDMA_NFS4_CALLBACKS(X) \
  X(CallbackGetAttributes, 3, "CB_GETATTR", 0, 2) \
  X(CallbackRecall, 4, "CB_RECALL", 0, 2) \
  X(CallbackLayoutRecall, 5, "CB_LAYOUTRECALL", 1, 2) \
  X(CallbackNotify, 6, "CB_NOTIFY", 1, 2) \
  X(CallbackPushDelegation, 7, "CB_PUSH_DELEG", 1, 2) \
  X(CallbackRecallAny, 8, "CB_RECALL_ANY", 1, 2) \
  X(CallbackRecallableAvailable, 9, "CB_RECALLABLE_OBJ_AVAIL", 1, 2) \
  X(CallbackRecallSlot, 10, "CB_RECALL_SLOT", 1, 2) \
  X(CallbackSequence, 11, "CB_SEQUENCE", 1, 2) \
  X(CallbackWantsCancelled, 12, "CB_WANTS_CANCELLED", 1, 2) \
  X(CallbackNotifyLock, 13, "CB_NOTIFY_LOCK", 1, 2) \
  X(CallbackNotifyDeviceId, 14, "CB_NOTIFY_DEVICEID", 1, 2) \
  X(CallbackOffload, 15, "CB_OFFLOAD", 2, 2) \
  X(CallbackIllegal, 10044, "CB_ILLEGAL", 0, 2)
// clang-format on

#define PNFSRDMA_OPERATION(Name, number, text, first, last) k##Name = number,
// nfs_opnum4
enum class Operation : uint32_t { PNFSRDMA_NFS4_OPERATIONS(PNFSRDMA_OPERATION) };
// nfs_cb_opnum4
enum class CallbackOperation : uint32_t { PNFSRDMA_NFS4_CALLBACKS(PNFSRDMA_OPERATION) };
#undef PNFSRDMA_OPERATION

// One row of a table.
struct OperationRow {
  uint32_t number = 0;
  const char* name = nullptr;  // "PUTFH"
  uint32_t minor_first = 0;
  uint32_t minor_last = 0;
};
#define PNFSRDMA_OPERATION(Name, number, text, first, last) {number, text, first, last},
inline constexpr OperationRow kOperationTable[] = {PNFSRDMA_NFS4_OPERATIONS(PNFSRDMA_OPERATION)};
inline constexpr OperationRow kCallbackTable[] = {PNFSRDMA_NFS4_CALLBACKS(PNFSRDMA_OPERATION)};
#undef PNFSRDMA_OPERATION

// The row of a number; null if it is no operation (OP_ILLEGAL itself has one).
constexpr const OperationRow* find_operation(uint32_t number) {
  for (const OperationRow& row : kOperationTable) {
    if (row.number == number) return &row;
  }
  return nullptr;
}
constexpr const OperationRow* find_callback(uint32_t number) {
  for (const OperationRow& row : kCallbackTable) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

// "PUTFH"; "UNKNOWN" for a number that is no operation. For metrics and logs.
constexpr const char* to_string(Operation operation) {
  const OperationRow* row = find_operation(static_cast<uint32_t>(operation));
  return row ? row->name : "UNKNOWN";
}
constexpr const char* to_string(CallbackOperation operation) {
  const OperationRow* row = find_callback(static_cast<uint32_t>(operation));
  return row ? row->name : "UNKNOWN";
}

}  // namespace pnfsrdma::nfs4
