// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/wire_format.h"

#include <algorithm>

namespace pnfsrdma::rdma::iwarp {
namespace {

void encode_control(std::byte* to, size_t ulpdu_length, bool tagged, bool last, Message message) {
  store_big_endian(to, static_cast<uint16_t>(ulpdu_length));
  to[2] = static_cast<std::byte>((tagged ? kTaggedBit : 0) | (last ? kLastBit : 0) | kDdpVersion);
  to[3] = static_cast<std::byte>(kRdmapVersion | static_cast<uint8_t>(message));
}

}  // namespace

size_t encode_tagged(std::byte* to, Message message, bool last, uint32_t stag, uint64_t offset,
                     uint32_t payload) {
  encode_control(to, kTaggedHeader - kLengthSize + payload, true, last, message);
  store_big_endian(to + 4, stag);
  store_big_endian(to + 8, offset);
  return kTaggedHeader;
}

size_t encode_untagged(std::byte* to, Message message, bool last, uint32_t queue, uint32_t sequence,
                       uint32_t message_offset, uint32_t payload) {
  encode_control(to, kUntaggedHeader - kLengthSize + payload, false, last, message);
  store_big_endian(to + 4, uint32_t{0});
  store_big_endian(to + 8, queue);
  store_big_endian(to + 12, sequence);
  store_big_endian(to + 16, message_offset);
  return kUntaggedHeader;
}

size_t encode_read_request(std::byte* to, uint32_t sequence, const ReadRequest& request) {
  std::byte* at = to + encode_untagged(to, Message::kReadRequest, true, kRequestQueue, sequence, 0,
                                       kReadRequestSize - kUntaggedHeader);
  store_big_endian(at, request.sink_stag);
  store_big_endian(at + 4, request.sink_offset);
  store_big_endian(at + 12, request.length);
  store_big_endian(at + 16, request.source_stag);
  store_big_endian(at + 20, request.source_offset);
  return kReadRequestSize;
}

size_t encode_flush_request(std::byte* to, uint32_t sequence, const FlushRequest& request) {
  std::byte* at = to + encode_untagged(to, Message::kFlushRequest, true, kRequestQueue, sequence, 0,
                                       kFlushRequestSize - kUntaggedHeader);
  store_big_endian(at, request.stag);
  store_big_endian(at + 4, request.length);
  store_big_endian(at + 8, request.offset);
  store_big_endian(at + 16, request.flags);
  return kFlushRequestSize;
}

size_t encode_terminate(std::byte* to, TerminateCode code, ByteSpan failed) {
  std::byte* const control = to + kUntaggedHeader;
  std::byte* at = control + 4;
  uint16_t bits = 0;
  // Nothing of the segment is told for LLP errors and catastrophic ones: its header may be garbage.
  bool wanted = code.layer != 2 && code.type != 0;
  if (wanted && failed.size() >= 4) {
    bool tagged = (std::to_integer<uint8_t>(failed[2]) & kTaggedBit) != 0;
    size_t header = (tagged ? kTaggedHeader : kUntaggedHeader);
    if (failed.size() >= header) {
      bits |= 0x8000 | 0x4000;
      at = std::copy_n(failed.begin(), header, at);
      bool request =
          (std::to_integer<uint8_t>(failed[3]) & kOpcodeMask) == static_cast<uint8_t>(Message::kReadRequest);
      // The RDMAP header is told with protection errors of Read Requests only.
      if (!tagged && request && code.layer == 0 && code.type == 1 && failed.size() >= kReadRequestSize) {
        bits |= 0x2000;
        at = std::copy_n(failed.begin() + kUntaggedHeader, 28, at);
      }
    }
  }
  control[0] = static_cast<std::byte>(code.layer << 4 | (code.type & 0x0F));
  control[1] = static_cast<std::byte>(code.code);
  store_big_endian(control + 2, bits);
  encode_untagged(to, Message::kTerminate, true, kTerminateQueue, 1, 0, static_cast<uint32_t>(at - control));
  return static_cast<size_t>(at - to);
}

Segment decode_segment(const std::byte* from) {
  auto control = std::to_integer<uint8_t>(from[2]);
  Segment segment;
  segment.message = static_cast<Message>(std::to_integer<uint8_t>(from[3]) & kOpcodeMask);
  segment.tagged = (control & kTaggedBit) != 0;
  segment.last = (control & kLastBit) != 0;
  segment.stag = load_big_endian<uint32_t>(from + 4);
  size_t header = kTaggedHeader;
  if (segment.tagged) {
    segment.offset = load_big_endian<uint64_t>(from + 8);
  } else {
    header = kUntaggedHeader;
    segment.queue = load_big_endian<uint32_t>(from + 8);
    segment.sequence = load_big_endian<uint32_t>(from + 12);
    segment.message_offset = load_big_endian<uint32_t>(from + 16);
  }
  size_t frame = load_big_endian<uint16_t>(from) + kLengthSize;
  segment.payload = frame > header ? static_cast<uint32_t>(frame - header) : 0;
  return segment;
}

ReadRequest decode_read_request(const std::byte* payload) {
  return {.sink_stag = load_big_endian<uint32_t>(payload),
          .sink_offset = load_big_endian<uint64_t>(payload + 4),
          .length = load_big_endian<uint32_t>(payload + 12),
          .source_stag = load_big_endian<uint32_t>(payload + 16),
          .source_offset = load_big_endian<uint64_t>(payload + 20)};
}

FlushRequest decode_flush_request(const std::byte* payload) {
  return {.stag = load_big_endian<uint32_t>(payload),
          .length = load_big_endian<uint32_t>(payload + 4),
          .offset = load_big_endian<uint64_t>(payload + 8),
          .flags = load_big_endian<uint32_t>(payload + 16)};
}

ReceivedTerminate decode_terminate(ByteSpan payload) {
  ReceivedTerminate terminate;
  if (payload.size() < 4) return terminate;
  auto first = std::to_integer<uint8_t>(payload[0]);
  terminate.code = {static_cast<uint8_t>(first >> 4), static_cast<uint8_t>(first & 0x0F),
                    std::to_integer<uint8_t>(payload[1])};
  auto bits = std::to_integer<uint8_t>(payload[2]);
  ByteSpan segment = payload.subspan(4);
  if ((bits & 0x40) == 0 || segment.size() < 4) return terminate;
  bool tagged = (std::to_integer<uint8_t>(segment[2]) & kTaggedBit) != 0;
  if (segment.size() < (tagged ? kTaggedHeader : kUntaggedHeader)) return terminate;
  terminate.has_segment = true;
  terminate.segment = decode_segment(segment.data());
  return terminate;
}

}  // namespace pnfsrdma::rdma::iwarp
