// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/base/clock.h"

namespace pnfsrdma::brick {

// What one brick gives at most. Running out is Status::kLimit, never a growth without end.
struct Limits {
  uint32_t sessions = 1024;
  uint32_t grants_per_session = 65536;
  uint32_t registrations = 262144;  // of all sessions together
};

// Of one client, until the device has given up their queue pairs: the one it uses and earlier ones.
inline constexpr size_t kConnectionsPerSessionMax = 64;

// Of a client that connects: so many grants are registered for it in one turn of the control loop, or as many
// as this time allows.
inline constexpr size_t kRegisteredPerTurn = 256;
inline constexpr Milliseconds kRegisteringTurn{2};
// Grants whose blocks are unpinned in one turn, when their handles are dead.
inline constexpr size_t kUnpinnedPerTurn = 4096;

// A client with more grants than one turn registers that reconnects so soon is delayed, each time for twice as
// long. The longest is well below what clients wait for a connection (three seconds).
inline constexpr Milliseconds kKnockApart{10'000};
inline constexpr Milliseconds kPutOffShortest{10};
inline constexpr Milliseconds kPutOffLongest{1000};

// The log tells so often of a limit that is met.
inline constexpr Milliseconds kRefusalToldApart{60'000};

// Ranges longer than this are zeroed, copied and persisted by a worker, not by the control loop.
inline constexpr uint64_t kInlineBytesMax = 64 << 10;

// What one turn at the flush gate takes at most, in bytes and in ranges: a disk has it in a fraction of a
// second, and everybody else waits for no more than that. Ranges no further apart than the gap are one.
inline constexpr uint64_t kFlushTurnBytes = 16 << 20;
inline constexpr size_t kFlushTurnRanges = 64;
inline constexpr size_t kFlushGapBytes = 256 << 10;

// Watches of all clients together: a signal looks at no more.
inline constexpr size_t kWatchesMax = 65536;
// Events that a client has not taken: of one watch, and of all of its connection, which may have one gap of each watch
// beyond that. One that has so many is given no further watch.
inline constexpr size_t kUnsentPerWatch = 256;
inline constexpr size_t kUnsentPerConnection = 1024;
inline constexpr size_t kUnsentToWatch = 2048;

// Piece by which the background zeroes a block: between pieces it can be stopped.
inline constexpr uint64_t kZeroPieceBytes = 256 << 10;

}  // namespace pnfsrdma::brick
