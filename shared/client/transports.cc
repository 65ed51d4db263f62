// SPDX-License-Identifier: Apache-2.0
#include "shared/client/transports.h"

#include <sys/resource.h>

#include <cerrno>

#include "shared/base/log.h"
#include "shared/initiator/brick/buffer.h"
#include "shared/rdma/iwarp/transport.h"
#include "shared/rdma/verbs/transport.h"

namespace pnfsrdma::client {
namespace {

void raise_locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(!::setrlimit(RLIMIT_MEMLOCK, &limit));  // a region that does not fit says so by itself
}

// Every worker has a buffer registered with every transport: a device that takes none is of no use.
Result<> takes_buffers(const std::shared_ptr<rdma::Transport>& transport) {
  const initiator::TransportDomain domain{transport, transport->make_protection_domain()};
  TRY(initiator::Buffer::allocate({&domain, 1}, initiator::kBufferSize));
  return {};
}

Result<Transports> usable_devices() {
  TRY_ASSIGN(auto devices, rdma::verbs::make_transports());
  raise_locked_memory_limit();
  Transports usable;
  Error last(ENODEV, "no RDMA device");
  for (auto& device : devices) {
    std::shared_ptr<rdma::Transport> transport = std::move(device);
    if (const auto result = takes_buffers(transport); !result) {
      last = result.error();
    } else {
      usable.push_back(std::move(transport));
    }
  }
  if (usable.empty()) return std::unexpected(std::move(last));
  leave_out_surplus(usable);
  return usable;
}

}  // namespace

Result<Transports> make_transports(DataTransports wanted, Random& random) {
  Transports transports;
  if (wanted != DataTransports::kTcp) {
    auto devices = usable_devices();
    if (devices) {
      transports = *std::move(devices);
    } else if (wanted == DataTransports::kRdma) {
      return std::unexpected(devices.error().in("proto=rdma (proto=iwarp does without a device)"));
    } else if (devices.error().number() != ENODEV) {
      log_warning("client", "no-rdma error=\"{}\" data uses iwarp", devices.error().to_string());
    }
  }
  if (wanted != DataTransports::kRdma) transports.push_back(rdma::iwarp::make_transport({}, random));
  return transports;
}

void leave_out_surplus(Transports& devices) {
  constexpr size_t kDevicesMax = initiator::kTransportsMax - 1;
  if (devices.size() <= kDevicesMax) return;
  std::string names;
  for (size_t i = kDevicesMax; i < devices.size(); ++i)
    names += (names.empty() ? "" : ",") + devices[i]->device();
  devices.resize(kDevicesMax);
  log_warning(
      "client",
      "devices-left-out devices={} cause=\"a mount uses {} RDMA devices\" what=\"bricks that only these "
      "can reach use iwarp, or the server\"",
      names, kDevicesMax);
}

std::string names_of(const Transports& transports) {
  std::string names;
  for (const auto& transport : transports) {
    const std::string name = transport->name();
    if (names.ends_with(name)) continue;
    names += (names.empty() ? "" : "/") + name;
  }
  return names;
}

}  // namespace pnfsrdma::client
