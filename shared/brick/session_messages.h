// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/xdr/types.h"

// What client and brick say to each other over the data connection (SEND): XDR, a 32-bit message type first.
// The client speaks first (iWARP wants that). One answer per message, in order; a long hello answer comes in
// parts.
namespace pnfsrdma::brick {

// Bytes: both sides post receives of this size.
inline constexpr uint32_t kSessionMessageMax = 32768;
inline constexpr uint32_t kHelloGrantsPerMessage = 1024;
inline constexpr uint32_t kPersistRangesPerMessage = 1024;
inline constexpr uint32_t kSessionVersion = 1;
// Messages a client may have unanswered.
inline constexpr uint32_t kSessionCredits = 8;

// CM private data of the client's connect, XDR.
struct ConnectPrivateData {
  uint32_t version = kSessionVersion;
  xdr::FixedOpaque<16> ticket{};
};
// CM private data of a reject: why.
enum class RejectReason : uint32_t { kVersion = 1, kTicket = 2, kBusy = 3 };
constexpr bool xdr_known(RejectReason value) {
  return value >= RejectReason::kVersion && value <= RejectReason::kBusy;
}

enum class MessageType : uint32_t { kHelloCall = 1, kHelloReply = 2, kPersistCall = 3, kPersistReply = 4 };
constexpr bool xdr_known(MessageType value) {
  return value >= MessageType::kHelloCall && value <= MessageType::kPersistReply;
}

struct HelloCall {
  uint32_t version = kSessionVersion;
};
struct HelloGrant {
  uint64_t grant = 0;
  uint32_t handle = 0;
  uint64_t address = 0;
};
// All live grants of the session, under the handles of this connection. `more`: another part follows.
struct HelloReply {
  xdr::FixedOpaque<8> verifier{};
  uint32_t connection = 0;
  xdr::List<HelloGrant, kHelloGrantsPerMessage> grants;
  bool more = false;
};

// Offsets are in the grant. The answer comes when all ranges are as durable as the device's class says.
struct PersistTarget {
  uint64_t grant = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};
struct PersistCall {
  uint64_t id = 0;
  xdr::List<PersistTarget, kPersistRangesPerMessage> ranges;
};
enum class PersistStatus : uint32_t { kOk = 0, kUnknownGrant = 1, kBounds = 2, kIo = 3 };
constexpr bool xdr_known(PersistStatus value) {
  return value <= PersistStatus::kIo;
}
struct PersistReply {
  uint64_t id = 0;
  PersistStatus status = PersistStatus::kOk;
  xdr::FixedOpaque<8> verifier{};
};

}  // namespace pnfsrdma::brick
