// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/message.h"

#include <cerrno>

#include "shared/xdr/codec.h"

namespace pnfsrdma::rpc {
namespace {

const char* word_for(AcceptStatus status) {
  switch (status) {
    case AcceptStatus::kSuccess:
      return "SUCCESS";
    case AcceptStatus::kProgramUnavailable:
      return "PROG_UNAVAIL";
    case AcceptStatus::kProgramMismatch:
      return "PROG_MISMATCH";
    case AcceptStatus::kProcedureUnavailable:
      return "PROC_UNAVAIL";
    case AcceptStatus::kGarbageArguments:
      return "GARBAGE_ARGS";
    case AcceptStatus::kSystemError:
      return "SYSTEM_ERR";
  }
  return "unknown";
}

int errno_for(AcceptStatus status) {
  switch (status) {
    case AcceptStatus::kSuccess:
      return 0;
    case AcceptStatus::kProgramUnavailable:
    case AcceptStatus::kProgramMismatch:
      return EPROTONOSUPPORT;
    case AcceptStatus::kProcedureUnavailable:
      return EOPNOTSUPP;
    case AcceptStatus::kGarbageArguments:
      return EBADMSG;
    case AcceptStatus::kSystemError:
      return EIO;
  }
  return EIO;
}

}  // namespace

OpaqueAuth to_opaque(const AuthSys& credential) {
  return {AuthFlavor::kSys, xdr::Opaque<kAuthBytesMax>(xdr::encode_to_bytes(credential))};
}

std::optional<AuthSys> to_auth_sys(const OpaqueAuth& credential) {
  if (credential.flavor != AuthFlavor::kSys) return std::nullopt;
  auto decoded = xdr::decode_from<AuthSys>(credential.body);
  if (!decoded) return std::nullopt;
  return std::move(*decoded);
}

void xdr_encode(xdr::Encoder& encoder, const CallHeader& header) {
  encoder.put_u32(header.xid);
  xdr::encode(encoder, MessageType::kCall);
  encoder.put_u32(kRpcVersion);
  encoder.put_u32(header.program);
  encoder.put_u32(header.version);
  encoder.put_u32(header.procedure);
  xdr::encode(encoder, header.credential);
  xdr::encode(encoder, header.verifier);
}

bool xdr_decode(xdr::Decoder& decoder, CallHeader& header) {
  MessageType type{};
  uint32_t rpc_version = 0;
  if (!decoder.get_u32(header.xid) || !xdr::decode(decoder, type) || !decoder.get_u32(rpc_version))
    return false;
  if (type != MessageType::kCall || rpc_version != kRpcVersion)
    return decoder.fail(xdr::DecodeError::kInvalid);
  return decoder.get_u32(header.program) && decoder.get_u32(header.version) &&
         decoder.get_u32(header.procedure) && xdr::decode(decoder, header.credential) &&
         xdr::decode(decoder, header.verifier);
}

ReplyHeader ReplyHeader::refusal(uint32_t xid, AcceptStatus status) {
  ReplyHeader header = success(xid);
  header.body.get_if<ReplyStatus::kAccepted>()->outcome.select(status);
  return header;
}

ReplyHeader ReplyHeader::program_mismatch(uint32_t xid, VersionRange supported) {
  ReplyHeader header = refusal(xid, AcceptStatus::kProgramMismatch);
  *header.body.get_if<ReplyStatus::kAccepted>()->outcome.get_if<AcceptStatus::kProgramMismatch>() = supported;
  return header;
}

ReplyHeader ReplyHeader::rpc_mismatch(uint32_t xid) {
  ReplyHeader header{xid, {}};
  header.body = decltype(header.body)::make<ReplyStatus::kDenied>(
      RejectedReply::make<RejectStatus::kRpcMismatch>({kRpcVersion, kRpcVersion}));
  return header;
}

ReplyHeader ReplyHeader::auth_error(uint32_t xid, AuthStatus status) {
  ReplyHeader header{xid, {}};
  header.body = decltype(header.body)::make<ReplyStatus::kDenied>(
      RejectedReply::make<RejectStatus::kAuthError>(status));
  return header;
}

bool ReplyHeader::successful() const {
  const AcceptedReply* accepted = body.get_if<ReplyStatus::kAccepted>();
  return accepted && accepted->outcome.is<AcceptStatus::kSuccess>();
}

Error ReplyHeader::to_error() const {
  if (const AcceptedReply* accepted = body.get_if<ReplyStatus::kAccepted>()) {
    const AcceptStatus status = accepted->outcome.discriminant();
    return Error(errno_for(status), std::string("the peer answered ") + word_for(status));
  }
  const RejectedReply& rejected = *body.get_if<ReplyStatus::kDenied>();
  if (const AuthStatus* why = rejected.get_if<RejectStatus::kAuthError>()) {
    return Error(EACCES, "the peer answered AUTH_ERROR " + std::to_string(static_cast<uint32_t>(*why)));
  }
  return Error(EPROTONOSUPPORT, "the peer answered RPC_MISMATCH");
}

void xdr_encode(xdr::Encoder& encoder, const ReplyHeader& header) {
  encoder.put_u32(header.xid);
  xdr::encode(encoder, MessageType::kReply);
  xdr::encode(encoder, header.body);
}

bool xdr_decode(xdr::Decoder& decoder, ReplyHeader& header) {
  MessageType type{};
  if (!decoder.get_u32(header.xid) || !xdr::decode(decoder, type)) return false;
  if (type != MessageType::kReply) return decoder.fail(xdr::DecodeError::kInvalid);
  return xdr::decode(decoder, header.body);
}

std::optional<MessageStart> peek_message(ByteSpan record) {
  xdr::Decoder decoder(record);
  MessageStart start;
  if (!decoder.get_u32(start.xid) || !xdr::decode(decoder, start.type)) return std::nullopt;
  return start;
}

std::expected<CallHeader, CallRefused> decode_call(xdr::Decoder& decoder) {
  const std::optional<MessageStart> start = peek_message(decoder.rest());
  if (!start || start->type != MessageType::kCall) return std::unexpected(CallRefused{});
  // The version before all else: what follows it is of this version only (RFC 5531, 9).
  xdr::Decoder version_decoder(decoder.rest());
  uint64_t skipped = 0;
  uint32_t rpc_version = 0;
  if (!version_decoder.get_u64(skipped) || !version_decoder.get_u32(rpc_version)) {
    return std::unexpected(CallRefused{});
  }
  if (rpc_version != kRpcVersion) return std::unexpected(CallRefused{ReplyHeader::rpc_mismatch(start->xid)});
  CallHeader header;
  if (!xdr::decode(decoder, header)) {
    return std::unexpected(CallRefused{ReplyHeader::auth_error(start->xid, AuthStatus::kBadCredential)});
  }
  return header;
}

}  // namespace pnfsrdma::rpc
