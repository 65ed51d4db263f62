// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace pnfsrdma::brick {

// What one brick gives at most. Running out is Status::kLimit, never a growth without end.
struct Limits {
  uint32_t sessions = 1024;
  uint32_t grants_per_session = 65536;
  uint32_t registrations = 262144;  // of all sessions together
};

// Of one client, until the device has given up their queue pairs: the one it uses and earlier ones.
inline constexpr size_t kConnectionsPerSessionMax = 64;

// Ranges longer than this are zeroed, copied and persisted by a worker, not by the control loop.
inline constexpr uint64_t kInlineBytesMax = 64 << 10;

// What one turn at the flush gate takes at most, in bytes and in ranges: a disk has it in a fraction of a
// second, and everybody else waits for no more than that.
inline constexpr uint64_t kFlushTurnBytes = 16 << 20;
inline constexpr size_t kFlushTurnRanges = 64;

// Piece by which the background zeroes a block: between pieces it can be stopped.
inline constexpr uint64_t kZeroPieceBytes = 256 << 10;

}  // namespace pnfsrdma::brick
