// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "shared/base/deferred_destruction.h"
#include "shared/base/event_loop.h"
#include "shared/rdma/transport.h"
#include "shared/rpc/server.h"
#include "shared/rpc_rdma/upper_layer.h"

namespace pnfsrdma::rpc_rdma {

// Each connection has more than a megabyte of registered buffers.
inline constexpr size_t kConnectionsMax = 512;

// Accepts RPC-over-RDMA connections of one transport and gives them to an rpc::Service in the loop.
// Destroying it stops accepting; connections live on. Loop thread only; the transport's own thread accepts,
// and what a connection had of the device ends in the thread of a DeferredDestruction: the loop never waits
// for a device.
class Listener {
 public:
  // "host:port"; port 0: any, see address(). `destruction` outlives the listener. Errors as
  // rdma::Transport::listen().
  static Result<std::unique_ptr<Listener>> listen(EventLoop& loop, std::shared_ptr<rdma::Transport> transport,
                                                  const std::string& address, rpc::Service service,
                                                  const UpperLayer& upper_layer,
                                                  DeferredDestruction& destruction);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::string address() const { return listener_->address(); }
  // Those that the device has not given up yet among them.
  size_t connections() const;

 private:
  struct Shared;
  static void accept(const std::shared_ptr<Shared>& shared, std::unique_ptr<rdma::ConnectionRequest> request);

  explicit Listener(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<rdma::Listener> listener_;
};

}  // namespace pnfsrdma::rpc_rdma
