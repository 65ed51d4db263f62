// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <variant>

#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/brick/session_messages.h"

// Session messages to and from bytes, for both ends of the data connection. Pure functions.
namespace pnfsrdma::brick {

using SessionMessage = std::variant<HelloCall, HelloReply, PersistCall, PersistReply, ChangeWordCall,
                                    ChangeWordReply, VerifyCall, VerifyReply, WatchCall, WatchReply,
                                    SignalCall, SignalReply, EventsCall, EventsReply>;

// Writes the message type and the message at the front of `out` (at least kSessionMessageMax bytes) and
// returns the length to send. Every message within its bounds fits.
size_t encode_session_message(const SessionMessage& message, MutableByteSpan out);
// EPROTO for an unknown type, a malformed or over-long body, trailing bytes.
Result<SessionMessage> decode_session_message(ByteSpan bytes);
// The same into `message`, which keeps the room of what it held: no allocation where one kind follows itself.
// After an Error it holds anything.
Result<> decode_session_message(ByteSpan bytes, SessionMessage& message);

// CM private data of a connect.
Bytes encode_connect(const ConnectPrivateData& data);
Result<ConnectPrivateData> decode_connect(ByteSpan bytes);

// CM private data of the reply to it. What is too short says nothing.
Bytes encode_accept(const AcceptPrivateData& data);
AcceptPrivateData decode_accept(ByteSpan bytes);

// CM private data of a reject: words for the user, since Transport::connect hands it on as Error::what()
// text.
Bytes encode_reject(RejectReason reason);
// Why Transport::connect failed, when it was the brick that said no.
std::optional<RejectReason> reject_reason(const Error& error);

}  // namespace pnfsrdma::brick
