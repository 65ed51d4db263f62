// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>

#include "shared/base/bytes.h"

namespace pnfsrdma::rdma::iwarp {

// The MPA Request and Reply (RFC 5044, 7.1; enhanced by RFC 6581): 20 bytes and private data.
inline constexpr size_t kMpaHeader = 20;
inline constexpr size_t kMpaPrivateDataMax = 512;

struct MpaFrame {
  bool reply = false;
  bool markers = false;   // M: the sender wants markers in what it receives
  bool crc = false;       // C
  bool rejected = false;  // R, replies only
  uint8_t revision = 2;
  // S: with revision 2, four bytes in front of the private data carry the read depths.
  bool enhanced = false;
  uint16_t inbound_depth = 0;   // IRD: READs its sender takes; kDepthOpen: not negotiated
  uint16_t outbound_depth = 0;  // ORD: READs its sender will have in flight
  bool peer_to_peer = false;    // the first FPDU has to be a ready-to-receive frame …
  bool rtr_write = false;       // … a WRITE or READ of zero bytes, as proposed or chosen here
  bool rtr_read = false;
  Bytes private_data;  // the upper layer's
};
inline constexpr uint16_t kDepthOpen = 0x3fff;

// The fixed part tells how much follows it.
struct MpaHeader {
  MpaFrame frame;  // without depths and private data
  uint16_t length = 0;
};
// Why a frame is not one.
enum class MpaError : uint8_t {
  kKey,       // not MPA, or the peer thinks it has our role
  kRevision,  // one we do not speak
  kLength,    // more private data than MPA allows, or too little for the depths
};
const char* to_string(MpaError error);

// Decodes kMpaHeader bytes, expecting a reply or a request.
std::expected<MpaHeader, MpaError> decode_mpa_header(ByteSpan bytes, bool reply);
// Adds what followed the header, `header.length` bytes.
std::expected<MpaFrame, MpaError> decode_mpa_body(MpaHeader header, ByteSpan body);

Bytes encode_mpa_frame(const MpaFrame& frame);

}  // namespace pnfsrdma::rdma::iwarp
