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
// CM private data of the brick's reply, XDR; zeros may follow. A brick of before says nothing, which is zeros, too. A
// client sends no message that the brick does not say it understands.
struct AcceptPrivateData {
  uint32_t understands = 0;  // bits: kUnderstands*
  uint64_t record = 0;  // which record of changed words the session has: another number is another, empty one
};
inline constexpr uint32_t kUnderstandsChangeWord = 1;
inline constexpr uint32_t kUnderstandsVerify = 2;
inline constexpr uint32_t kUnderstandsEvents = 4;
// CM private data of a reject: why.
enum class RejectReason : uint32_t { kVersion = 1, kTicket = 2, kBusy = 3 };
constexpr bool xdr_known(RejectReason value) {
  return value >= RejectReason::kVersion && value <= RejectReason::kBusy;
}

enum class MessageType : uint32_t {
  kHelloCall = 1,
  kHelloReply = 2,
  kPersistCall = 3,
  kPersistReply = 4,
  kChangeWordCall = 5,
  kChangeWordReply = 6,
  kVerifyCall = 7,
  kVerifyReply = 8,
  kWatchCall = 9,
  kWatchReply = 10,
  kSignalCall = 11,
  kSignalReply = 12,
  kEventsCall = 13,
  kEventsReply = 14,
};
constexpr bool xdr_known(MessageType value) {
  return value >= MessageType::kHelloCall && value <= MessageType::kEventsReply;
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

// A word of eight bytes, aligned to as many and little-endian, is changed as a whole by the brick's processor: no other
// change of it by these messages, whoever's, comes between its reading and its writing. WRITEs do not count as such.
enum class WordChange : uint32_t { kStore = 1, kCompareAndSwap = 2, kFetchAndAdd = 3 };
constexpr bool xdr_known(WordChange value) {
  return value >= WordChange::kStore && value <= WordChange::kFetchAndAdd;
}
// Slots of a session's record. A client has one call in a slot at a time.
inline constexpr uint32_t kReplaySlots = 64;

// Made once, however often it comes: a call of the last sequence number of its slot is answered from the
// record, and one below that is not made. So a client that lost the answer with its connection asks again on
// the next one, unless that has another record: then it cannot know.
struct ChangeWordCall {
  uint64_t id = 0;
  uint64_t record = 0;  // AcceptPrivateData's of the connection that it was sent on first
  uint32_t slot = 0;
  uint64_t sequence = 0;  // grows in its slot
  WordChange change = WordChange::kStore;
  bool durable = false;  // when it is answered
  uint64_t grant = 0;    // for reading and writing
  uint64_t offset = 0;   // in the grant
  uint64_t operand = 0;  // what is stored, swapped in or added
  uint64_t expected = 0;
};
enum class WordStatus : uint32_t {
  kOk = 0,
  kUnknownGrant = 1,  // not made: there is no such grant any more, or it is for reading only
  kInvalid = 2,       // not made: outside of the grant, or not aligned
  kNotDurable = 3,    // made, and the flush failed
  kForgotten = 4,     // not made now; whether it was before, the brick does not know
};
constexpr bool xdr_known(WordStatus value) {
  return value <= WordStatus::kForgotten;
}
struct ChangeWordReply {
  uint64_t id = 0;
  WordStatus status = WordStatus::kOk;
  uint64_t before = 0;  // what the word was
  xdr::FixedOpaque<8> verifier{};
};

// The ranges are flushed, dropped from the processor's caches where that leads to the medium, and read back. At most
// kVerifyBytesPerMessage of them all: it is done by the thread that serves the connection.
inline constexpr uint32_t kVerifyRangesPerMessage = 256;
inline constexpr uint64_t kVerifyBytesPerMessage = 4 << 20;
struct VerifyCall {
  uint64_t id = 0;
  xdr::List<PersistTarget, kVerifyRangesPerMessage> ranges;
};
struct VerifyReply {
  uint64_t id = 0;
  PersistStatus status = PersistStatus::kOk;
  xdr::FixedOpaque<8> verifier{};
  bool medium = false;                                     // false: a copy in front of it, as a page cache
  xdr::List<uint32_t, kVerifyRangesPerMessage> checksums;  // CRC32C
};

// From the answer on the client hears of each signal that touches the range: of the signal or, where that cannot be, of
// a gap. The watch ends with its grant, which the client hears of as the end, and silently with the connection. None
// of that waits for the client. `length` 0: the watch ends, if there is one; what is on its way still comes.
inline constexpr size_t kWatchesPerConnection = 256;
struct WatchCall {
  uint64_t id = 0;
  uint64_t watch = 0;  // the client's number for it, of no other watch of this connection
  uint64_t grant = 0;  // for reading
  uint64_t offset = 0;
  uint64_t length = 0;
};
enum class WatchStatus : uint32_t { kOk = 0, kUnknownGrant = 1, kInvalid = 2, kLimit = 3 };
constexpr bool xdr_known(WatchStatus value) {
  return value <= WatchStatus::kLimit;
}
struct WatchReply {
  uint64_t id = 0;
  WatchStatus status = WatchStatus::kOk;
};

// The ranges are flushed; when all of them are as durable as the device's class says, those who watch a part of them
// are told of `value`; then it is answered. Nobody is told anything where the brick's verifier is not `verifier`, or
// the flush fails. A call whose answer is lost may be repeated: then they are told twice.
inline constexpr uint32_t kSignalRangesPerMessage = 256;
struct SignalCall {
  uint64_t id = 0;
  xdr::FixedOpaque<8> verifier{};  // under which what is there was written
  uint64_t value = 0;
  xdr::List<PersistTarget, kSignalRangesPerMessage> ranges;  // grants for writing
};
enum class SignalStatus : uint32_t { kOk = 0, kUnknownGrant = 1, kBounds = 2, kIo = 3, kVerifier = 4 };
constexpr bool xdr_known(SignalStatus value) {
  return value <= SignalStatus::kVerifier;
}
struct SignalReply {
  uint64_t id = 0;
  SignalStatus status = SignalStatus::kOk;  // kUnknownGrant: some may have been told
  xdr::FixedOpaque<8> verifier{};
};

// Answered when there is something to tell, which may be never. A client has one of these at a time, beside the
// messages that it may have unanswered, and only when it has asked to watch something.
struct EventsCall {
  uint64_t id = 0;
};
// kGap: signals that the client was too slow for have not been kept. kEnd: the grant has been withdrawn.
enum class EventKind : uint32_t { kSignal = 0, kGap = 1, kEnd = 2 };
constexpr bool xdr_known(EventKind value) {
  return value <= EventKind::kEnd;
}
struct Event {
  uint64_t watch = 0;
  EventKind kind = EventKind::kSignal;
  uint64_t sequence = 0;  // counts from 1 what the watch has been told; none is left out
  uint64_t offset = 0;    // in the range that is watched: what of that was signalled
  uint64_t length = 0;
  uint64_t value = 0;
};
inline constexpr uint32_t kEventsPerMessage = 512;
struct EventsReply {
  uint64_t id = 0;
  xdr::List<Event, kEventsPerMessage> events;
};

}  // namespace pnfsrdma::brick
