// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "server/mds/admin/config.h"
#include "shared/base/deferred_destruction.h"
#include "shared/base/event_loop.h"
#include "shared/rdma/transport.h"
#include "shared/rpc_rdma/listener.h"

namespace pnfsrdma::mds {

using RdmaListeners = std::vector<std::unique_ptr<rpc_rdma::Listener>>;

// Listens for RPC-over-RDMA at every address of rdma_listen: by iWARP in user space, and on the RDMA devices
// that have the address (a wildcard: all of their addresses). No device is normal and said in the log; so is
// an address of a device that cannot be used. An error when the TCP port cannot be had. `loop` and `destruction`,
// where connections end, outlive them.
Result<RdmaListeners> open_rdma_listeners(EventLoop& loop, const Config& config,
                                          const std::shared_ptr<rdma::Transport>& iwarp,
                                          const rpc::Service& service, DeferredDestruction& destruction);

}  // namespace pnfsrdma::mds
