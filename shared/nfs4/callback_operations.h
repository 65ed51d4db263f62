// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/attributes.h"
#include "shared/nfs4/minor2_operations.h"
#include "shared/nfs4/open_operations.h"
#include "shared/nfs4/pnfs_operations.h"
#include "shared/nfs4/response.h"

// What the server asks of the client (RFC 8881, 20; RFC 7862, 16).
namespace pnfsrdma::nfs4 {

// CB_GETATTR (20.1)
struct CallbackGetAttributesArguments {
  FileHandle file_handle;
  Bitmap requested;
};
struct CallbackGetAttributesResult {
  Attributes attributes;
};
using CallbackGetAttributesResponse = Response<CallbackGetAttributesResult>;

// CB_RECALL (20.2)
struct CallbackRecallArguments {
  Stateid stateid;
  bool truncate = false;
  FileHandle file_handle;
};
struct CallbackRecallResult {};
using CallbackRecallResponse = Response<CallbackRecallResult>;

// CB_LAYOUTRECALL (20.3)
enum class LayoutRecallType : uint32_t { kFile = 1, kFsid = 2, kAll = 3 };
constexpr bool xdr_known(LayoutRecallType type) {
  return type >= LayoutRecallType::kFile && type <= LayoutRecallType::kAll;
}
struct LayoutRecallFile {
  FileHandle file_handle;
  uint64_t offset = 0;
  uint64_t length = 0;
  Stateid stateid;
};
using LayoutRecallWhat =
    xdr::Union<LayoutRecallType, xdr::Arm<LayoutRecallFile, LayoutRecallType::kFile>,
               xdr::Arm<Fsid, LayoutRecallType::kFsid>, xdr::Arm<xdr::Void, LayoutRecallType::kAll>>;
struct CallbackLayoutRecallArguments {
  uint32_t layout_type = 0;
  IoMode io_mode = IoMode::kAny;
  bool changed = false;  // the client's data under the layout is no longer wanted
  LayoutRecallWhat what;
};
struct CallbackLayoutRecallResult {};
using CallbackLayoutRecallResponse = Response<CallbackLayoutRecallResult>;

// CB_NOTIFY (20.4). What happened is one opaque per bit of the mask; notifications themselves are not
// decoded.
struct Notification {
  Bitmap mask;
  xdr::Opaque<kAttributeBytesMax> values;
};
struct CallbackNotifyArguments {
  Stateid stateid;
  FileHandle file_handle;
  xdr::List<Notification, kListMax> changes;
};
struct CallbackNotifyResult {};
using CallbackNotifyResponse = Response<CallbackNotifyResult>;

// CB_PUSH_DELEG (20.5)
struct CallbackPushDelegationArguments {
  FileHandle file_handle;
  Delegation delegation;
};
struct CallbackPushDelegationResult {};
using CallbackPushDelegationResponse = Response<CallbackPushDelegationResult>;

// CB_RECALL_ANY (20.6): bits of the mask
inline constexpr uint32_t kRecallAnyReadDelegation = 0;
inline constexpr uint32_t kRecallAnyWriteDelegation = 1;
inline constexpr uint32_t kRecallAnyDirectoryDelegation = 2;
inline constexpr uint32_t kRecallAnyFileLayout = 3;
inline constexpr uint32_t kRecallAnyBlockLayout = 4;
inline constexpr uint32_t kRecallAnyObjectLayoutMin = 8;
inline constexpr uint32_t kRecallAnyObjectLayoutMax = 9;
inline constexpr uint32_t kRecallAnyOtherLayoutMin = 12;
inline constexpr uint32_t kRecallAnyOtherLayoutMax = 15;
struct CallbackRecallAnyArguments {
  uint32_t objects_to_keep = 0;
  Bitmap types;
};
struct CallbackRecallAnyResult {};
using CallbackRecallAnyResponse = Response<CallbackRecallAnyResult>;

// CB_RECALLABLE_OBJ_AVAIL (20.7)
struct CallbackRecallableAvailableArguments {
  uint32_t objects_to_keep = 0;
  Bitmap types;
};
struct CallbackRecallableAvailableResult {};
using CallbackRecallableAvailableResponse = Response<CallbackRecallableAvailableResult>;

// CB_RECALL_SLOT (20.8)
struct CallbackRecallSlotArguments {
  uint32_t target_highest_slot_id = 0;
};
struct CallbackRecallSlotResult {};
using CallbackRecallSlotResponse = Response<CallbackRecallSlotResult>;

// CB_SEQUENCE (20.9). Referring calls: requests of the client that this callback may have overtaken.
struct ReferringCall {
  uint32_t sequence_id = 0;
  uint32_t slot_id = 0;
};
struct ReferringCalls {
  SessionId session_id{};
  xdr::List<ReferringCall, kSmallListMax> calls;
};
struct CallbackSequenceArguments {
  SessionId session_id{};
  uint32_t sequence_id = 0;
  uint32_t slot_id = 0;
  uint32_t highest_slot_id = 0;
  bool cache_this = false;
  xdr::List<ReferringCalls, kSmallListMax> referring_calls;
};
struct CallbackSequenceResult {
  SessionId session_id{};
  uint32_t sequence_id = 0;
  uint32_t slot_id = 0;
  uint32_t highest_slot_id = 0;
  uint32_t target_highest_slot_id = 0;
};
using CallbackSequenceResponse = Response<CallbackSequenceResult>;

// CB_WANTS_CANCELLED (20.10)
struct CallbackWantsCancelledArguments {
  bool contended = false;
  bool resourced = false;
};
struct CallbackWantsCancelledResult {};
using CallbackWantsCancelledResponse = Response<CallbackWantsCancelledResult>;

// CB_NOTIFY_LOCK (20.11)
struct CallbackNotifyLockArguments {
  FileHandle file_handle;
  StateOwner lock_owner;
};
struct CallbackNotifyLockResult {};
using CallbackNotifyLockResponse = Response<CallbackNotifyLockResult>;

// CB_NOTIFY_DEVICEID (20.12)
inline constexpr uint32_t kNotifyDeviceIdChange = 1;
inline constexpr uint32_t kNotifyDeviceIdDelete = 2;
struct CallbackNotifyDeviceIdArguments {
  xdr::List<Notification, kListMax> changes;
};
struct CallbackNotifyDeviceIdResult {};
using CallbackNotifyDeviceIdResponse = Response<CallbackNotifyDeviceIdResult>;

// CB_OFFLOAD (RFC 7862, 16.1): the outcome of an asynchronous copy, or how many bytes were copied before it
// failed.
struct CallbackOffloadArguments {
  FileHandle file_handle;
  Stateid stateid;
  xdr::Union<Status, xdr::Arm<WriteOutcome, Status::kOk>, xdr::Default<uint64_t>> outcome;
};
struct CallbackOffloadResult {};
using CallbackOffloadResponse = Response<CallbackOffloadResult>;

struct CallbackIllegalArguments {};
struct CallbackIllegalResult {};
using CallbackIllegalResponse = Response<CallbackIllegalResult>;

}  // namespace pnfsrdma::nfs4
