// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/bytes.h"
#include "shared/rdma/iwarp/terminate_code.h"

// The numbers of the wire: MPA (RFC 5044), DDP (RFC 5041), RDMAP (RFC 5040), Flush
// (draft-talpey-rdma-commit-01). Only the format is here; who may send what when is in requester.h,
// responder.h and frame_reader.h.
//
//   FPDU  = ULPDU length u16 | ULPDU | 0-3 zero bytes | CRC32C, least significant byte first
//   ULPDU = control u16 | STag u32 | TO u64 | payload                     (tagged)
//         | control u16 | u32 | QN u32 | MSN u32 | MO u32 | payload       (untagged)
namespace pnfsrdma::rdma::iwarp {

inline constexpr size_t kLengthSize = 2;  // ULPDU length; all header sizes below include it
inline constexpr size_t kCrcSize = 4;
inline constexpr size_t kTaggedHeader = 16;
inline constexpr size_t kUntaggedHeader = 20;
inline constexpr size_t kReadRequestSize = kUntaggedHeader + 28;
inline constexpr size_t kFlushRequestSize = kUntaggedHeader + 20;
inline constexpr size_t kUlpduMax = 65535;
inline constexpr size_t kFrameMax = kLengthSize + kUlpduMax + 3 + kCrcSize;
// Control word, length of the failing segment, its DDP header (18) and a Read Request's RDMAP header.
inline constexpr size_t kTerminateSizeMax = kUntaggedHeader + 4 + 2 + 18 + 28;

// Payload we put into one segment: the most that leaves the length word valid and keeps sources cache-line
// aligned.
inline constexpr uint32_t kSegmentPayload = 65472;

inline constexpr uint8_t kTaggedBit = 0x80;
inline constexpr uint8_t kLastBit = 0x40;
inline constexpr uint8_t kDdpVersionMask = 0x03;
inline constexpr uint8_t kDdpVersion = 0x01;
inline constexpr uint8_t kRdmapVersionMask = 0xC0;
inline constexpr uint8_t kRdmapVersion = 0x40;
inline constexpr uint8_t kOpcodeMask = 0x0F;

enum class Message : uint8_t {
  kWrite = 0x0,
  kReadRequest = 0x1,
  kReadResponse = 0x2,
  kSend = 0x3,
  kSendInvalidate = 0x4,
  kSendSolicited = 0x5,
  kSendSolicitedInvalidate = 0x6,
  kTerminate = 0x7,
  kFlushRequest = 0xC,
  kFlushResponse = 0xD,
};

// Untagged queues.
inline constexpr uint32_t kSendQueue = 0;
inline constexpr uint32_t kRequestQueue = 1;
inline constexpr uint32_t kTerminateQueue = 2;
inline constexpr uint32_t kFlushResponseQueue = 3;
inline constexpr uint32_t kQueueCount = 4;

inline constexpr uint32_t kFlushPersistent = 1;
inline constexpr uint32_t kFlushVisible = 2;

// Zero bytes behind an ULPDU so that length word, ULPDU and they are a multiple of four.
constexpr size_t padding_of(size_t ulpdu_length) {
  return (0 - (ulpdu_length + kLengthSize)) & 3;
}

// The header of one received segment.
struct Segment {
  Message message = Message::kWrite;
  bool tagged = false;
  bool last = false;
  uint32_t stag = 0;    // tagged; of an untagged one the word in its place
  uint64_t offset = 0;  // tagged: TO
  uint32_t queue = 0;   // untagged: QN, MSN, MO
  uint32_t sequence = 0;
  uint32_t message_offset = 0;
  uint32_t payload = 0;  // bytes behind the header
};

struct ReadRequest {
  uint32_t sink_stag = 0;
  uint64_t sink_offset = 0;
  uint32_t length = 0;
  uint32_t source_stag = 0;
  uint64_t source_offset = 0;
};
struct FlushRequest {
  uint32_t stag = 0;
  uint32_t length = 0;
  uint64_t offset = 0;
  uint32_t flags = 0;
};

// Encoders write the header with its length word to `to` and return its size. `payload` bytes follow.
size_t encode_tagged(std::byte* to, Message message, bool last, uint32_t stag, uint64_t offset,
                     uint32_t payload);
size_t encode_untagged(std::byte* to, Message message, bool last, uint32_t queue, uint32_t sequence,
                       uint32_t message_offset, uint32_t payload);
size_t encode_read_request(std::byte* to, uint32_t sequence, const ReadRequest& request);
size_t encode_flush_request(std::byte* to, uint32_t sequence, const FlushRequest& request);
// `failed` is the header of the segment at fault as it came, length word first; what RFC 5040 4.8 wants of it
// is copied.
size_t encode_terminate(std::byte* to, TerminateCode code, ByteSpan failed);

// Decode a header whose bytes are there; decode_segment() needs kTaggedHeader or kUntaggedHeader of them.
Segment decode_segment(const std::byte* from);
ReadRequest decode_read_request(const std::byte* payload);
FlushRequest decode_flush_request(const std::byte* payload);

// A peer's Terminate, read leniently: Linux siw on little-endian hosts puts the fields in other places.
struct ReceivedTerminate {
  TerminateCode code;
  bool has_segment = false;  // the failing segment's header is known
  Segment segment;
};
ReceivedTerminate decode_terminate(ByteSpan payload);

}  // namespace pnfsrdma::rdma::iwarp
