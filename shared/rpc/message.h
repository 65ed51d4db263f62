// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "shared/base/result.h"
#include "shared/rpc/limits.h"
#include "shared/xdr/decoder.h"
#include "shared/xdr/encoder.h"
#include "shared/xdr/types.h"
#include "shared/xdr/union.h"

// The headers of ONC RPC messages, RFC 5531 section 9.
namespace pnfsrdma::rpc {

inline constexpr uint32_t kRpcVersion = 2;

enum class MessageType : uint32_t { kCall = 0, kReply = 1 };
constexpr bool xdr_known(MessageType type) {
  return type <= MessageType::kReply;
}

// Flavours are open-ended: a server answers AUTH_ERROR to one it does not speak, decoding does not refuse it.
enum class AuthFlavor : uint32_t { kNone = 0, kSys = 1, kShort = 2, kGss = 6, kTls = 7 };

struct OpaqueAuth {
  AuthFlavor flavor = AuthFlavor::kNone;
  xdr::Opaque<kAuthBytesMax> body;
};

// authsys_parms (RFC 5531, appendix A).
struct AuthSys {
  uint32_t stamp = 0;
  xdr::String<255> machine_name;
  uint32_t uid = 0;
  uint32_t gid = 0;
  xdr::List<uint32_t, 16> gids;
};
OpaqueAuth to_opaque(const AuthSys& credential);
// Nothing if the flavour is another one or the body is malformed.
std::optional<AuthSys> to_auth_sys(const OpaqueAuth& credential);

// call_body and what stands before it. On the wire the message type and the RPC version are part of it.
struct CallHeader {
  uint32_t xid = 0;
  uint32_t program = 0;
  uint32_t version = 0;
  uint32_t procedure = 0;
  OpaqueAuth credential;
  OpaqueAuth verifier;
};
void xdr_encode(xdr::Encoder& encoder, const CallHeader& header);
bool xdr_decode(xdr::Decoder& decoder, CallHeader& header);

struct VersionRange {
  uint32_t low = 0;
  uint32_t high = 0;
};

enum class AcceptStatus : uint32_t {
  kSuccess = 0,
  kProgramUnavailable = 1,
  kProgramMismatch = 2,
  kProcedureUnavailable = 3,
  kGarbageArguments = 4,
  kSystemError = 5,
};
constexpr bool xdr_known(AcceptStatus status) {
  return status <= AcceptStatus::kSystemError;
}

enum class AuthStatus : uint32_t {
  kOk = 0,
  kBadCredential = 1,
  kRejectedCredential = 2,
  kBadVerifier = 3,
  kRejectedVerifier = 4,
  kTooWeak = 5,
  kInvalidResponse = 6,
  kFailed = 7,
  kKerberosGeneric = 8,
  kTimeExpired = 9,
  kTicketFile = 10,
  kDecode = 11,
  kNetAddress = 12,
  kGssCredentialProblem = 13,
  kGssContextProblem = 14,
};
constexpr bool xdr_known(AuthStatus status) {
  return status <= AuthStatus::kGssContextProblem;
}

enum class RejectStatus : uint32_t { kRpcMismatch = 0, kAuthError = 1 };
constexpr bool xdr_known(RejectStatus status) {
  return status <= RejectStatus::kAuthError;
}

enum class ReplyStatus : uint32_t { kAccepted = 0, kDenied = 1 };
constexpr bool xdr_known(ReplyStatus status) {
  return status <= ReplyStatus::kDenied;
}

struct AcceptedReply {
  OpaqueAuth verifier;
  xdr::Union<AcceptStatus, xdr::Arm<xdr::Void, AcceptStatus::kSuccess>,
             xdr::Arm<VersionRange, AcceptStatus::kProgramMismatch>, xdr::Default<xdr::Void>>
      outcome;
};
using RejectedReply = xdr::Union<RejectStatus, xdr::Arm<VersionRange, RejectStatus::kRpcMismatch>,
                                 xdr::Arm<AuthStatus, RejectStatus::kAuthError>>;

// reply_body and what stands before it; the message type is part of it on the wire. Results follow when
// successful().
struct ReplyHeader {
  uint32_t xid = 0;
  xdr::Union<ReplyStatus, xdr::Arm<AcceptedReply, ReplyStatus::kAccepted>,
             xdr::Arm<RejectedReply, ReplyStatus::kDenied>>
      body;

  static ReplyHeader success(uint32_t xid) { return {xid, {}}; }
  // Any but kProgramMismatch, which has the next one.
  static ReplyHeader refusal(uint32_t xid, AcceptStatus status);
  static ReplyHeader program_mismatch(uint32_t xid, VersionRange supported);
  static ReplyHeader rpc_mismatch(uint32_t xid);
  static ReplyHeader auth_error(uint32_t xid, AuthStatus status);

  bool successful() const;
  // What the caller is told when not successful(): an errno and the RFC's word for it.
  Error to_error() const;
};
void xdr_encode(xdr::Encoder& encoder, const ReplyHeader& header);
bool xdr_decode(xdr::Decoder& decoder, ReplyHeader& header);

// XID and type of a message, without consuming anything. Nothing if the bytes are too short or the type is
// unknown.
struct MessageStart {
  uint32_t xid = 0;
  MessageType type = MessageType::kCall;
};
std::optional<MessageStart> peek_message(ByteSpan record);

// A record that is a call: its header, or the reply that refuses it (RPC_MISMATCH, AUTH_BADCRED), or nothing
// at all when it is not a call message to begin with and the connection has to go. `decoder` is then behind
// the header.
struct CallRefused {
  std::optional<ReplyHeader> reply;
};
std::expected<CallHeader, CallRefused> decode_call(xdr::Decoder& decoder);

}  // namespace pnfsrdma::rpc
