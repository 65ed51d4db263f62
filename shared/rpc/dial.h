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

// The same for a thread that may wait. The socket is non-blocking.
Result<FileDescriptor> dial_and_wait(const SocketAddress& address, Milliseconds timeout);

}  // namespace pnfsrdma::rpc
