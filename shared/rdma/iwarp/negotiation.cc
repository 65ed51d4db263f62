// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/negotiation.h"

#include <algorithm>
#include <cerrno>

namespace pnfsrdma::rdma::iwarp {
namespace {

constexpr std::string_view kPrefixMagic = "pRDM";
constexpr std::byte kPrefixVersion{1};
constexpr std::byte kPrefixFlush{1};
constexpr std::byte kPrefixAtomicWrite{2};

// READs the peer may have in flight. Its proofs of WRITEs need one as well, so there is always at least that.
uint16_t inbound_depth(const QueuePairLimits& limits) {
  return static_cast<uint16_t>(std::clamp<uint32_t>(limits.read_depth, 1, 1024));
}

}  // namespace

Bytes add_prefix(ByteSpan private_data, const QueuePairLimits& limits) {
  Bytes bytes(kPrefixSize + private_data.size());
  std::ranges::copy(as_bytes(kPrefixMagic), bytes.begin());
  bytes[4] = kPrefixVersion;
  if (limits.native_flush) bytes[5] |= kPrefixFlush;
  if (limits.atomic_write) bytes[5] |= kPrefixAtomicWrite;
  std::ranges::copy(private_data, bytes.begin() + kPrefixSize);
  return bytes;
}

Prefixed take_prefix(const Bytes& private_data) {
  Prefixed result;
  result.present = private_data.size() >= kPrefixSize &&
                   as_text(ByteSpan(private_data).first(kPrefixMagic.size())) == kPrefixMagic &&
                   private_data[4] == kPrefixVersion;
  if (result.present) {
    result.native_flush = (private_data[5] & kPrefixFlush) != std::byte{0};
    result.atomic_write = (private_data[5] & kPrefixAtomicWrite) != std::byte{0};
  }
  result.private_data.assign(private_data.begin() + (result.present ? kPrefixSize : 0), private_data.end());
  return result;
}

MpaFrame make_request(const QueuePairLimits& limits, uint8_t revision, bool crc, ByteSpan private_data) {
  MpaFrame frame;
  frame.crc = crc;
  frame.revision = revision;
  frame.enhanced = revision == 2;
  frame.inbound_depth = inbound_depth(limits);
  frame.outbound_depth = inbound_depth(limits);
  frame.private_data = add_prefix(private_data, limits);
  return frame;
}

Result<Agreement> agree_on_reply(const QueuePairLimits& limits, const MpaFrame& request,
                                 const MpaFrame& reply, const Prefixed& said) {
  if (reply.markers) return fail(EPROTO, "the peer wants MPA markers, which are not supported");
  if (reply.revision > request.revision || (reply.enhanced && !request.enhanced)) {
    return fail(EPROTO, "the peer answered with an MPA revision that was not offered");
  }
  Agreement agreement;
  agreement.crc = request.crc || reply.crc;
  agreement.first_to_speak = true;
  agreement.inbound_depth = inbound_depth(limits);
  agreement.limits = limits;
  agreement.limits.read_depth = inbound_depth(limits);
  agreement.limits.native_flush = limits.native_flush && said.native_flush;
  agreement.limits.atomic_write = limits.atomic_write && said.atomic_write;
  if (!reply.enhanced) return agreement;
  if (reply.inbound_depth != kDepthOpen) {
    agreement.limits.read_depth = std::min<uint32_t>(agreement.limits.read_depth, reply.inbound_depth);
  }
  // Without a READ no WRITE can be proved (RFC 6581, 9.1 leaves it to us to refuse).
  if (agreement.limits.read_depth == 0) return fail(EPROTO, "the peer accepts no READs (IRD 0)");
  if (reply.outbound_depth != kDepthOpen && reply.outbound_depth > agreement.inbound_depth) {
    return fail(EPROTO, "the peer wants more READs in flight than were offered");
  }
  return agreement;
}

Answer answer_request(const QueuePairLimits& limits, const MpaFrame& request, const Prefixed& prefix,
                      bool crc, ByteSpan private_data) {
  Answer answer;
  Agreement& agreement = answer.agreement;
  agreement.crc = crc || request.crc;
  agreement.first_to_speak = false;
  agreement.inbound_depth = inbound_depth(limits);
  agreement.limits = limits;
  agreement.limits.read_depth = inbound_depth(limits);
  agreement.limits.native_flush = limits.native_flush && prefix.native_flush;
  agreement.limits.atomic_write = limits.atomic_write && prefix.atomic_write;

  MpaFrame& reply = answer.reply;
  reply.reply = true;
  reply.crc = agreement.crc;
  reply.revision = request.revision;
  reply.enhanced = request.enhanced;
  if (request.enhanced) {
    // The peer's ORD caps our IRD and its IRD our ORD.
    if (request.outbound_depth != kDepthOpen) {
      agreement.inbound_depth = std::clamp<uint32_t>(request.outbound_depth, 1, agreement.inbound_depth);
    }
    if (request.inbound_depth != kDepthOpen) {
      agreement.limits.read_depth = std::min<uint32_t>(agreement.limits.read_depth, request.inbound_depth);
    }
    reply.inbound_depth = static_cast<uint16_t>(agreement.inbound_depth);
    reply.outbound_depth = static_cast<uint16_t>(agreement.limits.read_depth);
    // Peer-to-peer: any of the two empty frames will do as the first; a WRITE when the peer left it open.
    reply.peer_to_peer = request.peer_to_peer;
    reply.rtr_read = request.peer_to_peer && request.rtr_read && !request.rtr_write;
    reply.rtr_write = request.peer_to_peer && !reply.rtr_read;
  }
  reply.private_data = prefix.present ? add_prefix(private_data, agreement.limits)
                                      : Bytes(private_data.begin(), private_data.end());
  return answer;
}

MpaFrame make_reject(const MpaFrame& request, const Prefixed& prefix, ByteSpan private_data) {
  MpaFrame reply;
  reply.reply = true;
  reply.rejected = true;
  reply.revision = request.revision;
  reply.enhanced = request.enhanced;
  reply.private_data =
      prefix.present ? add_prefix(private_data, {}) : Bytes(private_data.begin(), private_data.end());
  return reply;
}

}  // namespace pnfsrdma::rdma::iwarp
