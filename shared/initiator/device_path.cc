// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/device_path.h"

#include <string_view>

#include "shared/rpc/universal_address.h"

namespace pnfsrdma::initiator {

namespace {

bool carries(std::string_view transport, std::string_view netid) {
  if (netid == "tcp" || netid == "tcp6") return transport == "iwarp";
  if (netid == "rdma" || netid == "rdma6") return transport == "verbs";
  return transport == netid;  // "memory"
}

}  // namespace

std::vector<UsablePath> usable_paths(std::span<const nfs4::DevicePath> paths,
                                     std::span<const TransportDomain> transports) {
  std::vector<UsablePath> usable;
  for (size_t i = 0; i < transports.size(); ++i) {
    const std::string name = transports[i].transport->name();
    for (const nfs4::DevicePath& path : paths) {
      if (!carries(name, path.netid)) continue;
      if (path.netid == "memory") {
        usable.push_back({i, path.address});  // in-process: a name
      } else if (const auto address = rpc::from_universal_address(path.address)) {
        usable.push_back({i, address->to_string()});
      }
    }
  }
  return usable;
}

}  // namespace pnfsrdma::initiator
