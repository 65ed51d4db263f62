// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/mpa_frame.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::rdma::iwarp {
namespace {

constexpr std::string_view kRequestKey = "MPA ID Req Frame";
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";

constexpr uint16_t kMarkersFlag = 0x8000;
constexpr uint16_t kCrcFlag = 0x4000;
constexpr uint16_t kRejectFlag = 0x2000;
constexpr uint16_t kEnhancedFlag = 0x1000;
constexpr uint16_t kRevisionMask = 0x00ff;

constexpr size_t kDepthsSize = 4;
constexpr uint16_t kDepthMask = 0x3fff;
constexpr uint16_t kPeerToPeerFlag = 0x8000;  // in the IRD word
constexpr uint16_t kRtrWriteFlag = 0x8000;    // in the ORD word
constexpr uint16_t kRtrReadFlag = 0x4000;

}  // namespace

const char* to_string(MpaError error) {
  switch (error) {
    case MpaError::kKey:
      return "the peer does not speak MPA in this role";
    case MpaError::kRevision:
      return "the peer speaks an unknown MPA revision";
    case MpaError::kLength:
      return "the peer's MPA frame has an impossible length";
  }
  return "unknown";
}

std::expected<MpaHeader, MpaError> decode_mpa_header(ByteSpan bytes, bool reply) {
  CHECK(bytes.size() == kMpaHeader);
  std::string_view key = reply ? kReplyKey : kRequestKey;
  if (as_text(bytes.first(key.size())) != key) return std::unexpected(MpaError::kKey);
  auto flags = load_big_endian<uint16_t>(bytes.data() + 16);
  MpaHeader header;
  header.length = load_big_endian<uint16_t>(bytes.data() + 18);
  MpaFrame& frame = header.frame;
  frame.reply = reply;
  frame.markers = (flags & kMarkersFlag) != 0;
  frame.crc = (flags & kCrcFlag) != 0;
  frame.rejected = reply && (flags & kRejectFlag) != 0;
  frame.revision = static_cast<uint8_t>(flags & kRevisionMask);
  if (frame.revision < 1 || frame.revision > 2) return std::unexpected(MpaError::kRevision);
  // S is reserved in revision 1.
  frame.enhanced = frame.revision == 2 && (flags & kEnhancedFlag) != 0;
  if (header.length > kMpaPrivateDataMax) return std::unexpected(MpaError::kLength);
  if (frame.enhanced && header.length < kDepthsSize) return std::unexpected(MpaError::kLength);
  return header;
}

std::expected<MpaFrame, MpaError> decode_mpa_body(MpaHeader header, ByteSpan body) {
  if (body.size() != header.length) return std::unexpected(MpaError::kLength);
  MpaFrame frame = std::move(header.frame);
  if (frame.enhanced) {
    auto inbound = load_big_endian<uint16_t>(body.data());
    auto outbound = load_big_endian<uint16_t>(body.data() + 2);
    frame.inbound_depth = inbound & kDepthMask;
    frame.outbound_depth = outbound & kDepthMask;
    frame.peer_to_peer = (inbound & kPeerToPeerFlag) != 0;
    frame.rtr_write = (outbound & kRtrWriteFlag) != 0;
    frame.rtr_read = (outbound & kRtrReadFlag) != 0;
    body = body.subspan(kDepthsSize);
  }
  frame.private_data.assign(body.begin(), body.end());
  return frame;
}

Bytes encode_mpa_frame(const MpaFrame& frame) {
  const size_t length = frame.private_data.size() + (frame.enhanced ? kDepthsSize : 0);
  CHECK(length <= kMpaPrivateDataMax);
  Bytes bytes(kMpaHeader + length);
  std::ranges::copy(as_bytes(frame.reply ? kReplyKey : kRequestKey), bytes.begin());
  auto flags = static_cast<uint16_t>((frame.markers ? kMarkersFlag : 0) | (frame.crc ? kCrcFlag : 0) |
                                     (frame.rejected ? kRejectFlag : 0) |
                                     (frame.enhanced ? kEnhancedFlag : 0) | frame.revision);
  store_big_endian(bytes.data() + 16, flags);
  store_big_endian(bytes.data() + 18, static_cast<uint16_t>(length));
  std::byte* at = bytes.data() + kMpaHeader;
  if (frame.enhanced) {
    auto inbound = static_cast<uint16_t>((frame.inbound_depth & kDepthMask) |
                                         (frame.peer_to_peer ? kPeerToPeerFlag : 0));
    auto outbound =
        static_cast<uint16_t>((frame.outbound_depth & kDepthMask) | (frame.rtr_write ? kRtrWriteFlag : 0) |
                              (frame.rtr_read ? kRtrReadFlag : 0));
    store_big_endian(at, inbound);
    store_big_endian(at + 2, outbound);
    at += kDepthsSize;
  }
  std::ranges::copy(frame.private_data, at);
  return bytes;
}

}  // namespace pnfsrdma::rdma::iwarp
