// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/listener.h"

#include <algorithm>
#include <atomic>

#include "shared/base/log.h"
#include "shared/rpc_rdma/endpoint.h"
#include "shared/rpc_rdma/private_data.h"
#include "shared/rpc_rdma/stream.h"

namespace pnfsrdma::rpc_rdma {

// What the transport's thread and the loop share.
struct Listener::Shared {
  EventLoop& loop;
  const std::shared_ptr<rdma::Transport> transport;
  const rpc::Service service;
  const UpperLayer upper_layer;
  DeferredDestruction& destruction;
  const std::shared_ptr<std::atomic<size_t>> connections = std::make_shared<std::atomic<size_t>>(0);
  bool stopped = false;  // loop only
};

namespace {

// An endpoint that counts from its beginning to its very end: its queue pair and buffers are there as long.
struct CountedEndpoint {
  CountedEndpoint(std::unique_ptr<Endpoint> made, std::shared_ptr<std::atomic<size_t>> connections)
      : endpoint(std::move(made)), count(std::move(connections)) {
    ++*count;
  }
  ~CountedEndpoint() {
    endpoint.reset();
    --*count;
  }

  std::unique_ptr<Endpoint> endpoint;
  const std::shared_ptr<std::atomic<size_t>> count;
};

// In the transport's thread: receives are posted before the loop hears of the connection, for the peer may
// send as soon as it is accepted.
Result<std::unique_ptr<Endpoint>> accept_endpoint(const std::shared_ptr<rdma::Transport>& transport,
                                                  rdma::ConnectionRequest& request, size_t message_bytes_max,
                                                  const UpperLayer& upper_layer) {
  const Bytes said(request.private_data().begin(), request.private_data().end());
  const auto domain = transport->make_protection_domain();
  TRY_ASSIGN(MessageBuffers buffers, MessageBuffers::make(*transport, domain));
  TRY_ASSIGN(auto queue_pair, request.accept(domain, our_private_data(), queue_pair_limits()));
  return Endpoint::make(Endpoint::Role::kAccepting, transport, domain, std::move(buffers),
                        std::move(queue_pair), said, upper_layer, message_bytes_max);
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::listen(EventLoop& loop,
                                                   std::shared_ptr<rdma::Transport> transport,
                                                   const std::string& address, rpc::Service service,
                                                   const UpperLayer& upper_layer,
                                                   DeferredDestruction& destruction) {
  std::shared_ptr<Shared> shared(
      new Shared{loop, std::move(transport), std::move(service), upper_layer, destruction});
  std::unique_ptr<Listener> listener(new Listener(shared));
  TRY_ASSIGN(listener->listener_, shared->transport->listen(address, [shared](auto request) {
    accept(shared, std::move(request));
  }));
  return listener;
}

Listener::~Listener() {
  shared_->stopped = true;
}

size_t Listener::connections() const {
  return *shared_->connections;
}

void Listener::accept(const std::shared_ptr<Shared>& shared,
                      std::unique_ptr<rdma::ConnectionRequest> request) {
  const std::string peer = request->peer();
  if (*shared->connections >= std::min(kConnectionsMax, shared->service.connections_max)) {
    log_warning("rpc-rdma", "connection-rejected peer={} why=\"too many connections\"", peer);
    return request->reject({});
  }
  auto made = accept_endpoint(shared->transport, *request, shared->service.options.record_bytes_max,
                              shared->upper_layer);
  if (!made) {
    log_warning("rpc-rdma", "connection-failed peer={} why=\"{}\"", peer, made.error().to_string());
    return;
  }
  const auto counted =
      shared->destruction.adopt(std::make_unique<CountedEndpoint>(*std::move(made), shared->connections));
  shared->loop.post([shared, endpoint = std::shared_ptr<Endpoint>(counted, counted->endpoint.get())] {
    if (shared->stopped) return;
    const rpc::Service& service = shared->service;
    const auto stream = std::make_shared<Stream>(shared->loop, endpoint);
    rpc::ConnectionOptions options = service.options;
    if (service.memory != nullptr) {
      options.memory = service.memory->open(stream->peer());
      if (!options.memory) return;
    }
    const auto connection =
        rpc::Connection::start(shared->loop, stream, options, service.on_call, service.on_close);
    if (service.on_accept) service.on_accept(connection);
  });
}

}  // namespace pnfsrdma::rpc_rdma
