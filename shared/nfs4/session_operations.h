// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/response.h"
#include "shared/nfs4/security_operations.h"

// Clients, sessions and leases.
namespace pnfsrdma::nfs4 {

// EXCHANGE_ID flags (RFC 8881, 18.35)
inline constexpr uint32_t kExchangeSupportsMovedReferral = 0x00000001;
inline constexpr uint32_t kExchangeSupportsMovedMigration = 0x00000002;
inline constexpr uint32_t kExchangeSupportsFenceOperations = 0x00000004;  // RFC 7862, 9.1
inline constexpr uint32_t kExchangeBindPrincipalStateid = 0x00000100;
inline constexpr uint32_t kExchangeUseNonPnfs = 0x00010000;
inline constexpr uint32_t kExchangeUsePnfsMds = 0x00020000;
inline constexpr uint32_t kExchangeUsePnfsDs = 0x00040000;
inline constexpr uint32_t kExchangeMaskPnfs = 0x00070000;
inline constexpr uint32_t kExchangeUpdateConfirmed = 0x40000000;  // in arguments only
inline constexpr uint32_t kExchangeConfirmed = 0x80000000;        // in results only
inline constexpr uint32_t kExchangeArgumentsMask =
    kExchangeSupportsMovedReferral | kExchangeSupportsMovedMigration | kExchangeSupportsFenceOperations |
    kExchangeBindPrincipalStateid | kExchangeMaskPnfs | kExchangeUpdateConfirmed;

enum class StateProtect : uint32_t { kNone = 0, kMachineCredential = 1, kSsv = 2 };
constexpr bool xdr_known(StateProtect how) {
  return how <= StateProtect::kSsv;
}
struct StateProtectOperations {
  Bitmap must_enforce;
  Bitmap must_allow;
};
struct SsvParameters {
  StateProtectOperations operations;
  xdr::List<SecurityObjectId, kSmallListMax> hash_algorithms;
  xdr::List<SecurityObjectId, kSmallListMax> encryption_algorithms;
  uint32_t window = 0;
  uint32_t gss_handle_count = 0;
};
using StateProtectArguments = xdr::Union<StateProtect, xdr::Arm<xdr::Void, StateProtect::kNone>,
                                         xdr::Arm<StateProtectOperations, StateProtect::kMachineCredential>,
                                         xdr::Arm<SsvParameters, StateProtect::kSsv>>;
using GssHandle = xdr::Opaque<kOpaqueMax>;
struct SsvInfo {
  StateProtectOperations operations;
  uint32_t hash_algorithm = 0;
  uint32_t encryption_algorithm = 0;
  uint32_t ssv_length = 0;
  uint32_t window = 0;
  xdr::List<GssHandle, kSmallListMax> handles;
};
using StateProtectResult = xdr::Union<StateProtect, xdr::Arm<xdr::Void, StateProtect::kNone>,
                                      xdr::Arm<StateProtectOperations, StateProtect::kMachineCredential>,
                                      xdr::Arm<SsvInfo, StateProtect::kSsv>>;

// EXCHANGE_ID (18.35). An array of at most one item is std::optional: the same bytes.
struct ExchangeIdArguments {
  ClientOwner owner;
  uint32_t flags = 0;
  StateProtectArguments state_protect;
  std::optional<Implementation> implementation;
};
struct ExchangeIdResult {
  uint64_t client_id = 0;
  uint32_t sequence_id = 0;
  uint32_t flags = 0;
  StateProtectResult state_protect;
  ServerOwner server_owner;
  OwnerId server_scope;
  std::optional<Implementation> implementation;
};
using ExchangeIdResponse = Response<ExchangeIdResult>;

// callback_sec_parms4: with which credentials the server calls back.
struct CallbackSystemCredential {
  uint32_t stamp = 0;
  xdr::String<255> machine_name;
  uint32_t uid = 0;
  uint32_t gid = 0;
  xdr::List<uint32_t, 16> gids;
};
struct CallbackGssHandles {
  GssService service = GssService::kNone;
  GssHandle handle_from_server;
  GssHandle handle_from_client;
};
using CallbackSecurity =
    xdr::Union<uint32_t, xdr::Arm<xdr::Void, kFlavorNone>, xdr::Arm<CallbackSystemCredential, kFlavorSys>,
               xdr::Arm<CallbackGssHandles, kFlavorGss>>;

// channel_attrs4
struct ChannelAttributes {
  uint32_t header_pad_size = 0;
  uint32_t max_request_size = 0;
  uint32_t max_response_size = 0;
  uint32_t max_response_size_cached = 0;
  uint32_t max_operations = 0;
  uint32_t max_requests = 0;
  std::optional<uint32_t> rdma_ird;
};

// CREATE_SESSION (18.36)
inline constexpr uint32_t kSessionPersist = 1;
inline constexpr uint32_t kSessionBackChannel = 2;
inline constexpr uint32_t kSessionRdma = 4;
struct CreateSessionArguments {
  uint64_t client_id = 0;
  uint32_t sequence_id = 0;
  uint32_t flags = 0;
  ChannelAttributes fore_channel;
  ChannelAttributes back_channel;
  uint32_t callback_program = 0;
  xdr::List<CallbackSecurity, kSmallListMax> callback_security;
};
struct CreateSessionResult {
  SessionId session_id{};
  uint32_t sequence_id = 0;
  uint32_t flags = 0;
  ChannelAttributes fore_channel;
  ChannelAttributes back_channel;
};
using CreateSessionResponse = Response<CreateSessionResult>;

// DESTROY_SESSION (18.37)
struct DestroySessionArguments {
  SessionId session_id{};
};
struct DestroySessionResult {};
using DestroySessionResponse = Response<DestroySessionResult>;

// DESTROY_CLIENTID (18.50)
struct DestroyClientIdArguments {
  uint64_t client_id = 0;
};
struct DestroyClientIdResult {};
using DestroyClientIdResponse = Response<DestroyClientIdResult>;

// BACKCHANNEL_CTL (18.33)
struct BackchannelControlArguments {
  uint32_t callback_program = 0;
  xdr::List<CallbackSecurity, kSmallListMax> callback_security;
};
struct BackchannelControlResult {};
using BackchannelControlResponse = Response<BackchannelControlResult>;

// BIND_CONN_TO_SESSION (18.34)
enum class DirectionFromClient : uint32_t { kFore = 1, kBack = 2, kForeOrBoth = 3, kBackOrBoth = 7 };
constexpr bool xdr_known(DirectionFromClient direction) {
  return (direction >= DirectionFromClient::kFore && direction <= DirectionFromClient::kForeOrBoth) ||
         direction == DirectionFromClient::kBackOrBoth;
}
enum class DirectionFromServer : uint32_t { kFore = 1, kBack = 2, kBoth = 3 };
constexpr bool xdr_known(DirectionFromServer direction) {
  return direction >= DirectionFromServer::kFore && direction <= DirectionFromServer::kBoth;
}
struct BindConnectionToSessionArguments {
  SessionId session_id{};
  DirectionFromClient direction = DirectionFromClient::kFore;
  bool use_rdma_mode = false;
};
struct BindConnectionToSessionResult {
  SessionId session_id{};
  DirectionFromServer direction = DirectionFromServer::kFore;
  bool use_rdma_mode = false;
};
using BindConnectionToSessionResponse = Response<BindConnectionToSessionResult>;

// SEQUENCE (18.46) and its status flags
inline constexpr uint32_t kSequenceCallbackPathDown = 0x0001;
inline constexpr uint32_t kSequenceGssContextsExpiring = 0x0002;
inline constexpr uint32_t kSequenceGssContextsExpired = 0x0004;
inline constexpr uint32_t kSequenceExpiredAllStateRevoked = 0x0008;
inline constexpr uint32_t kSequenceExpiredSomeStateRevoked = 0x0010;
inline constexpr uint32_t kSequenceAdminStateRevoked = 0x0020;
inline constexpr uint32_t kSequenceRecallableStateRevoked = 0x0040;
inline constexpr uint32_t kSequenceLeaseMoved = 0x0080;
inline constexpr uint32_t kSequenceRestartReclaimNeeded = 0x0100;
inline constexpr uint32_t kSequenceCallbackPathDownSession = 0x0200;
inline constexpr uint32_t kSequenceBackchannelFault = 0x0400;
inline constexpr uint32_t kSequenceDeviceIdChanged = 0x0800;
inline constexpr uint32_t kSequenceDeviceIdDeleted = 0x1000;
struct SequenceArguments {
  SessionId session_id{};
  uint32_t sequence_id = 0;
  uint32_t slot_id = 0;
  uint32_t highest_slot_id = 0;
  bool cache_this = false;
};
struct SequenceResult {
  SessionId session_id{};
  uint32_t sequence_id = 0;
  uint32_t slot_id = 0;
  uint32_t highest_slot_id = 0;
  uint32_t target_highest_slot_id = 0;
  uint32_t status_flags = 0;
};
using SequenceResponse = Response<SequenceResult>;

// SET_SSV (18.47)
struct SetSsvArguments {
  xdr::Opaque<kOpaqueMax> ssv;
  xdr::Opaque<kOpaqueMax> digest;
};
struct SetSsvResult {
  xdr::Opaque<kOpaqueMax> digest;
};
using SetSsvResponse = Response<SetSsvResult>;

// RECLAIM_COMPLETE (18.51)
struct ReclaimCompleteArguments {
  bool one_filesystem = false;
};
struct ReclaimCompleteResult {};
using ReclaimCompleteResponse = Response<ReclaimCompleteResult>;

// FREE_STATEID (18.38), TEST_STATEID (18.48)
struct FreeStateidArguments {
  Stateid stateid;
};
struct FreeStateidResult {};
using FreeStateidResponse = Response<FreeStateidResult>;

struct TestStateidArguments {
  xdr::List<Stateid, kListMax> stateids;
};
struct TestStateidResult {
  xdr::List<Status, kListMax> statuses;
};
using TestStateidResponse = Response<TestStateidResult>;

}  // namespace pnfsrdma::nfs4
