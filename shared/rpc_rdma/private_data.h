// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/bytes.h"

// What the ends of a connection tell each other in the connection manager's private data (RFC 8797).
namespace pnfsrdma::rpc_rdma {

inline constexpr uint32_t kPrivateDataMagic = 0xf6ab0e18;
inline constexpr size_t kPrivateDataSize = 8;

// The longest inline messages one end sends and takes, bytes. A value.
struct Thresholds {
  uint32_t send = 0;
  uint32_t receive = 0;
  bool operator==(const Thresholds&) const = default;
};

// Our announcement: kInlineThreshold both ways, no remote invalidation.
Bytes our_private_data();

// What holds between us and a peer that has said `private_data` (which may hold anything in front of the
// magic and behind): for each direction the smaller of what one sends and the other takes; 1024 if it says
// nothing.
Thresholds agree(ByteSpan private_data);

}  // namespace pnfsrdma::rpc_rdma
