// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "shared/base/deferred_destruction.h"
#include "shared/base/sync.h"
#include "shared/initiator/session/socket.h"
#include "shared/rpc/socket_address.h"
#include "shared/rpc_rdma/endpoint.h"

namespace pnfsrdma::initiator {

// A session's connection by RPC-over-RDMA. The endpoint belongs to whoever holds the mutex; only waiting
// happens outside of it. Calls are copied: what the server may read by RDMA is never the caller's own memory.
class SessionRdmaSocket final : public SessionSocket {
 public:
  // Tries the transports in order. The error is that of the last one. What is connected ends in `destruction`:
  // nobody waits for its device.
  static Result<std::shared_ptr<SessionSocket>> connect(
      std::span<const std::shared_ptr<rdma::Transport>> transports, const rpc::SocketAddress& address,
      Milliseconds timeout, size_t record_bytes_max, Counters& counters, DeferredDestruction& destruction);
  SessionRdmaSocket(std::unique_ptr<rpc_rdma::Endpoint> endpoint, Counters& counters);

  Result<> send(ByteSpan record, Milliseconds patience) override;
  Result<> receive(bool wait, std::vector<Bytes>& records) override;
  void shut_down() override { queue_pair_.fail(); }
  int fd() const override { return queue_pair_.fd(); }

 private:
  const std::unique_ptr<rpc_rdma::Endpoint> endpoint_;
  rdma::QueuePair& queue_pair_;
  Counters& counters_;
  Mutex mutex_;
};

}  // namespace pnfsrdma::initiator
