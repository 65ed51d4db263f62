// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "shared/base/event_loop.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/rpc/connection.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::rpc {

// What a Listener makes of each connection it accepts.
struct Service {
  Connection::CallHandler on_call;
  Connection::CloseHandler on_close;                        // may be empty
  std::function<void(const ConnectionPointer&)> on_accept;  // may be empty; called before any on_call
  ConnectionOptions options;
  size_t connections_max = kConnectionsMax;  // a further one is closed at once
  MemoryBudget* memory = nullptr;            // counts what they hold; null: nobody does
  Connection::SecuredHandler on_secured{};   // may be empty
};

// A listening socket in the loop. Destroying it stops accepting; connections live on. Loop thread only.
class Listener {
 public:
  // "host:port", "[::1]:port", ":port", or a Unix path. Port 0: the kernel chooses, see address(). A socket
  // file left by a dead process is removed; one that somebody answers on is EADDRINUSE. `mode` is that of the
  // socket file.
  static Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const SocketAddress& address,
                                                  Service service, mode_t mode = 0600);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Where it really listens.
  const SocketAddress& address() const { return address_; }
  uint16_t port() const { return address_.port(); }
  size_t connections() const { return *connections_; }

 private:
  Listener(EventLoop& loop, FileDescriptor socket, SocketAddress address, Service service);
  void accept_some();
  void adopt(FileDescriptor socket);
  void pause();

  EventLoop& loop_;
  FileDescriptor socket_;
  SocketAddress address_;
  Service service_;
  std::shared_ptr<size_t> connections_ = std::make_shared<size_t>(0);
  EventLoop::TimerId pause_timer_ = 0;
};

}  // namespace pnfsrdma::rpc
