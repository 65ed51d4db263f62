// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/rpc/limits.h"

namespace pnfsrdma::rpc_rdma {

// RFC 8166, 3.3.2: what every peer takes, and all we may assume of one that does not say more.
inline constexpr uint32_t kInlineThresholdDefault = 1024;
// What our own receive buffers hold, and the longest message we send inline if the peer says so (RFC 8797).
inline constexpr uint32_t kInlineThreshold = 4096;

// Calls in flight on one connection, each way: what a requester asks for and a responder grants.
inline constexpr uint32_t kCredits = 128;
inline constexpr uint32_t kReverseCredits = 16;
// Receives beyond the credits, for messages that none covers (RDMA_ERROR, RDMA_DONE).
inline constexpr uint32_t kSpareReceives = 4;
inline constexpr uint32_t kSendBuffers = 64;

// Of one header: segments of all its chunks together, and chunks of its write list. The longest the kernel's
// client sends are about 32 segments for 1 MiB.
inline constexpr size_t kSegmentsMax = 128;
inline constexpr size_t kWriteChunksMax = 16;
// Work requests one message needs at most: one for each segment, one for each piece of a reply that a
// segment's end cuts, its SEND.
inline constexpr size_t kWorkRequestsMax = kSegmentsMax + 2 * kWriteChunksMax + 4;
// Work requests of one queue pair: several calls with as many segments as one may have.
inline constexpr uint32_t kSendDepth = 512;
inline constexpr uint32_t kReadDepth = 16;

inline constexpr size_t kMessageBytesMax = rpc::kRecordBytesMax;
// Bytes of chunks a connection has registered at once for pulling calls; further calls wait their turn.
inline constexpr size_t kPullBytesMax = size_t{8} << 20;
// Messages waiting for buffers or credits.
inline constexpr size_t kQueuedMessagesMax = 4096;

// Looks for completions in one turn of a loop before others get theirs: credits bound a peer's calls, nothing
// bounds its RDMA_DONE, RDMA_ERROR and scraps.
inline constexpr int kPollsPerTurn = 16;

// RFC 8267, 5.1: NFSv4's port for RPC-over-RDMA.
inline constexpr uint16_t kPort = 20049;

}  // namespace pnfsrdma::rpc_rdma
