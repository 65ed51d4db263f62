// SPDX-License-Identifier: Apache-2.0
#include "server/mds/rdma_listeners.h"

#include <sys/resource.h>

#include <cerrno>

#include "server/mds/ops/nfs_program.h"
#include "shared/base/log.h"
#include "shared/rdma/verbs/transport.h"
#include "shared/rpc/socket_address.h"
#include "shared/rpc_rdma/limits.h"

namespace pnfsrdma::mds {
namespace {

using Devices = std::vector<std::shared_ptr<rdma::Transport>>;

// Message buffers and the data of READ and WRITE are pinned while a device may reach them.
void raise_locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(!::setrlimit(RLIMIT_MEMLOCK, &limit));  // a region that does not fit says so by itself
}

Devices open_devices() {
  Devices devices;
  auto transports = rdma::verbs::make_transports();
  if (!transports) {
    log_info("mds", "no-rdma-device reason=\"{}\" RPC-over-RDMA uses iwarp", transports.error().what());
    return devices;
  }
  raise_locked_memory_limit();
  for (auto& transport : *transports) devices.push_back(std::move(transport));
  return devices;
}

// The addresses with port that devices may have for one of rdma_listen.
std::vector<std::string> device_addresses(const rpc::SocketAddress& address) {
  if (address.host() != "::" && address.host() != "0.0.0.0") return {address.to_string()};
  std::vector<std::string> addresses;
  for (const std::string& host : rdma::verbs::local_addresses()) {
    const bool six = host.find(':') != std::string::npos;
    addresses.push_back((six ? "[" + host + "]:" : host + ":") + std::to_string(address.port()));
  }
  return addresses;
}

Result<> listen(RdmaListeners& listeners, EventLoop& loop, std::shared_ptr<rdma::Transport> transport,
                const std::string& address, const rpc::Service& service, DeferredDestruction& destruction) {
  const std::string name = transport->name();
  TRY_ASSIGN(auto listener, rpc_rdma::Listener::listen(loop, std::move(transport), address, service,
                                                       nfs_upper_layer(), destruction));
  log_info("mds", "listening address={} transport={}", listener->address(), name);
  listeners.push_back(std::move(listener));
  return {};
}

}  // namespace

Result<RdmaListeners> open_rdma_listeners(EventLoop& loop, const Config& config,
                                          const std::shared_ptr<rdma::Transport>& iwarp,
                                          const rpc::Service& service, DeferredDestruction& destruction) {
  RdmaListeners listeners;
  if (config.rdma_listen.empty()) return listeners;
  const Devices devices = open_devices();
  for (const std::string& text : config.rdma_listen) {
    TRY_ASSIGN(const auto address, rpc::SocketAddress::parse(text, rpc_rdma::kPort));
    TRY(listen(listeners, loop, iwarp, address.to_string(), service, destruction));
    for (const std::string& on_device : device_addresses(address)) {
      for (const auto& device : devices) {
        const auto result = listen(listeners, loop, device, on_device, service, destruction);
        if (result || result.error().number() == EADDRNOTAVAIL) continue;
        log_warning("mds", "rdma-listen-failed address={} error=\"{}\"", on_device,
                    result.error().to_string());
      }
    }
  }
  return listeners;
}

}  // namespace pnfsrdma::mds
