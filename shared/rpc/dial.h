// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "shared/base/event_loop.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::rpc {

// Connects without blocking, in the loop. `done` is called exactly once, from the loop: with a connected,
// non-blocking socket, or with the errno (ETIMEDOUT after `timeout`).
void dial(EventLoop& loop, const SocketAddress& address, Milliseconds timeout,
          std::function<void(Result<FileDescriptor>)> done);

// Which port a TCP connection comes from.
enum class LocalPort : uint8_t {
  kAny,
  // One that only root may bind, as servers want it that believe what a caller says of himself (exports(5),
  // "secure"). Any other where that is not permitted, or none is free.
  kReserved
};
// What kReserved takes: above well-known services, as libtirpc and Linux do.
inline constexpr uint16_t kReservedPortFirst = 665;
inline constexpr uint16_t kReservedPortLast = 1023;

// The same for a thread that may wait. The socket is non-blocking.
Result<FileDescriptor> dial_and_wait(const SocketAddress& address, Milliseconds timeout,
                                     LocalPort port = LocalPort::kAny);

}  // namespace pnfsrdma::rpc
