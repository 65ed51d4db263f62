// SPDX-License-Identifier: Apache-2.0
#include "shared/brick/session_codec.h"

#include <array>
#include <cstring>
#include <string_view>

#include "shared/base/check.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::brick {
namespace {

constexpr size_t kTypeBytes = 4;
static_assert(kTypeBytes + 8 + 4 + 8 + uint64_t{kHelloGrantsPerMessage} * 20 <= kSessionMessageMax);
static_assert(kTypeBytes + 8 + 4 + uint64_t{kPersistRangesPerMessage} * 24 <= kSessionMessageMax);
static_assert(kTypeBytes + 8 + 4 + uint64_t{kEventsPerMessage} * 44 <= kSessionMessageMax);

template <typename T>
constexpr MessageType type_of() {
  if constexpr (std::is_same_v<T, HelloCall>) return MessageType::kHelloCall;
  if constexpr (std::is_same_v<T, HelloReply>) return MessageType::kHelloReply;
  if constexpr (std::is_same_v<T, PersistCall>) return MessageType::kPersistCall;
  if constexpr (std::is_same_v<T, PersistReply>) return MessageType::kPersistReply;
  if constexpr (std::is_same_v<T, ChangeWordCall>) return MessageType::kChangeWordCall;
  if constexpr (std::is_same_v<T, ChangeWordReply>) return MessageType::kChangeWordReply;
  if constexpr (std::is_same_v<T, VerifyCall>) return MessageType::kVerifyCall;
  if constexpr (std::is_same_v<T, VerifyReply>) return MessageType::kVerifyReply;
  if constexpr (std::is_same_v<T, WatchCall>) return MessageType::kWatchCall;
  if constexpr (std::is_same_v<T, WatchReply>) return MessageType::kWatchReply;
  if constexpr (std::is_same_v<T, SignalCall>) return MessageType::kSignalCall;
  if constexpr (std::is_same_v<T, SignalReply>) return MessageType::kSignalReply;
  if constexpr (std::is_same_v<T, EventsCall>) return MessageType::kEventsCall;
  if constexpr (std::is_same_v<T, EventsReply>) return MessageType::kEventsReply;
}

template <typename T>
Result<> decode_body(ByteSpan body, SessionMessage& message) {
  if (!std::holds_alternative<T>(message)) message.emplace<T>();
  xdr::Decoder decoder(body);
  if (xdr::decode(decoder, std::get<T>(message)) && decoder.remaining() == 0) return {};
  return fail(EPROTO, "malformed session message");
}

// By RejectReason - 1. Words, since they reach the user through Transport::connect; at most kPrivateDataMax
// bytes.
constexpr std::array<std::string_view, 3> kReasons = {
    "the brick speaks another session version",
    "the brick does not know this ticket",
    "the brick can take no connection now",
};

}  // namespace

size_t encode_session_message(const SessionMessage& message, MutableByteSpan out) {
  thread_local Bytes bytes;  // keeps its room: no allocation a message
  return std::visit(
      [&](const auto& body) {
        bytes.clear();
        xdr::Encoder encoder(bytes);
        xdr::encode(encoder, type_of<std::decay_t<decltype(body)>>());
        xdr::encode(encoder, body);
        CHECK(bytes.size() <= out.size());
        std::memcpy(out.data(), bytes.data(), bytes.size());
        return bytes.size();
      },
      message);
}

Result<> decode_session_message(ByteSpan bytes, SessionMessage& message) {
  if (bytes.size() < kTypeBytes) return fail(EPROTO, "session message without a type");
  const ByteSpan body = bytes.subspan(kTypeBytes);
  switch (static_cast<MessageType>(load_big_endian<uint32_t>(bytes.data()))) {
    case MessageType::kHelloCall:
      return decode_body<HelloCall>(body, message);
    case MessageType::kHelloReply:
      return decode_body<HelloReply>(body, message);
    case MessageType::kPersistCall:
      return decode_body<PersistCall>(body, message);
    case MessageType::kPersistReply:
      return decode_body<PersistReply>(body, message);
    case MessageType::kChangeWordCall:
      return decode_body<ChangeWordCall>(body, message);
    case MessageType::kChangeWordReply:
      return decode_body<ChangeWordReply>(body, message);
    case MessageType::kVerifyCall:
      return decode_body<VerifyCall>(body, message);
    case MessageType::kVerifyReply:
      return decode_body<VerifyReply>(body, message);
    case MessageType::kWatchCall:
      return decode_body<WatchCall>(body, message);
    case MessageType::kWatchReply:
      return decode_body<WatchReply>(body, message);
    case MessageType::kSignalCall:
      return decode_body<SignalCall>(body, message);
    case MessageType::kSignalReply:
      return decode_body<SignalReply>(body, message);
    case MessageType::kEventsCall:
      return decode_body<EventsCall>(body, message);
    case MessageType::kEventsReply:
      return decode_body<EventsReply>(body, message);
  }
  return fail(EPROTO, "session message of an unknown type");
}

Result<SessionMessage> decode_session_message(ByteSpan bytes) {
  Result<SessionMessage> message;
  if (auto decoded = decode_session_message(bytes, *message); !decoded) {
    message = std::unexpected(std::move(decoded).error());
  }
  return message;
}

Bytes encode_connect(const ConnectPrivateData& data) {
  return xdr::encode_to_bytes(data);
}

Result<ConnectPrivateData> decode_connect(ByteSpan bytes) {
  auto data = xdr::decode_from<ConnectPrivateData>(bytes);
  if (!data) return fail(EPROTO, "malformed private data of a connect");
  return *data;
}

Bytes encode_accept(const AcceptPrivateData& data) {
  return xdr::encode_to_bytes(data);
}

AcceptPrivateData decode_accept(ByteSpan bytes) {
  AcceptPrivateData data;
  xdr::Decoder decoder(bytes);
  return xdr::decode(decoder, data) ? data : AcceptPrivateData{};
}

Bytes encode_reject(RejectReason reason) {
  const ByteSpan text = as_bytes(kReasons.at(static_cast<uint32_t>(reason) - 1));
  return {text.begin(), text.end()};
}

std::optional<RejectReason> reject_reason(const Error& error) {
  for (size_t i = 0; i < kReasons.size(); ++i) {
    if (error.number() == ECONNREFUSED && error.what().find(kReasons[i]) != std::string::npos) {
      return static_cast<RejectReason>(i + 1);
    }
  }
  return std::nullopt;
}

}  // namespace pnfsrdma::brick
