// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "shared/base/result.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::fuse_client {

// Answers GET /metrics with what `text` gives, on two threads of its own, one request a connection. No
// authentication: the mount option says where it listens, which should be this host or a trusted network.
// Owned by run_mount().
class MetricsServer {
 public:
  // Listens and starts. A socket file that nobody listens on is taken over. Errors: EADDRINUSE, EACCES, with
  // the address. `text` is called from the server's threads and must outlive it.
  static Result<std::unique_ptr<MetricsServer>> start(const rpc::SocketAddress& address,
                                                      std::function<std::string()> text);
  // Ends the threads; takes a socket file away.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // As it listens: with the port the kernel chose for 0.
  const rpc::SocketAddress& address() const { return address_; }

 private:
  class Http;
  MetricsServer(std::unique_ptr<Http> http, rpc::SocketAddress address);

  std::unique_ptr<Http> http_;
  const rpc::SocketAddress address_;
};

}  // namespace pnfsrdma::fuse_client
