// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "shared/base/clock.h"

// What one caller, or all together, may take of the console.
namespace pnfsrdma::console {

inline constexpr size_t kConnectionsMax = 96;         // of one listener, each a thread while it lasts
inline constexpr size_t kConnectionsPerPeerMax = 48;  // of one address
inline constexpr size_t kStreamsMax = 24;             // of these, event streams
inline constexpr size_t kBodyBytesMax = 256 << 10;
inline constexpr size_t kPathBytesMax = 1024;
inline constexpr size_t kHeaderBytesMax = 64 << 10;        // of a request, all together
inline constexpr Milliseconds kRequestDeadline{20'000};    // from its first byte to its last
inline constexpr Milliseconds kHandshakeDeadline{10'000};  // of TLS
inline constexpr Milliseconds kIdleDeadline{15'000};       // between two requests
inline constexpr Milliseconds kDrainDeadline{2'000};       // behind an answer that did not wait for the body
inline constexpr size_t kDrainBytesMax = 1 << 20;
inline constexpr Milliseconds kWriteDeadline{20'000};     // of one write
inline constexpr Milliseconds kLoopDeadline{10'000};      // what the control loop may take for an answer
inline constexpr Milliseconds kSlowLoopDeadline{60'000};  // the same where a brick has to answer first

}  // namespace pnfsrdma::console
