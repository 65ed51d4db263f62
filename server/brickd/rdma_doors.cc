// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/rdma_doors.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "shared/base/log.h"
#include "shared/rdma/verbs/transport.h"

namespace pnfsrdma::brick {
namespace {

constexpr const char* kAuto = "auto";

bool all_auto(const std::vector<std::string>& wishes) {
  return std::ranges::all_of(wishes, [](const std::string& wish) { return wish == kAuto; });
}

void raise_locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(!::setrlimit(RLIMIT_MEMLOCK, &limit));  // a region that does not fit says so by itself
}

// On the device that has this address.
Result<> open_door(Brick& brick, const RdmaTransports& transports, const std::string& address) {
  Error last(EADDRNOTAVAIL, "data.rdma: no RDMA device has the address " + address + " (see `rdma link`)");
  for (const auto& transport : transports) {
    const auto listening = brick.listen_data(*transport, {.listen = address, .netid = "rdma"});
    if (listening) return {};
    if (listening.error().number() != EADDRNOTAVAIL) last = listening.error();
  }
  return std::unexpected(std::move(last));
}

}  // namespace

Result<RdmaTransports> open_rdma_devices(const Config& config) {
  if (config.data.rdma.empty()) return RdmaTransports();
  auto transports = rdma::verbs::make_transports();
  if (transports) {
    raise_locked_memory_limit();
    return transports;
  }
  if (!all_auto(config.data.rdma)) return std::unexpected(transports.error().in("data.rdma"));
  log_info("brick", "no-rdma reason=\"{}\" clients use iwarp", transports.error().what());
  return RdmaTransports();
}

Result<> open_rdma_doors(Brick& brick, const RdmaTransports& transports, const Config& config) {
  if (transports.empty()) return {};
  for (const std::string& wish : config.data.rdma) {
    if (wish != kAuto) {
      TRY(open_door(brick, transports, wish));
      continue;
    }
    const auto hosts = rdma::verbs::local_addresses();
    if (hosts.empty()) {
      log_warning("brick",
                  "no-rdma-address fix=\"ip address add, to a network interface of `rdma link`\" "
                  "clients use iwarp");
    }
    for (const std::string& host : hosts) {
      const bool six = host.find(':') != std::string::npos;
      const std::string address = (six ? "[" + host + "]" : host) + ":" + std::to_string(kRdmaPort);
      if (const auto opened = open_door(brick, transports, address); !opened) {
        log_warning("brick", "rdma-door-closed address={} error=\"{}\"", address, opened.error().to_string());
      }
    }
  }
  return {};
}

}  // namespace pnfsrdma::brick
