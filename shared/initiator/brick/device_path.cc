// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/device_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
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

size_t addresses_of(std::span<const UsablePath> paths, std::span<const TransportDomain> transports) {
  std::set<std::pair<std::string, std::string_view>> addresses;
  for (const UsablePath& path : paths) {
    addresses.emplace(transports[path.transport].transport->name(), path.address);
  }
  return addresses.size();
}

void drop_address(std::vector<UsablePath>& paths, size_t failed,
                  std::span<const TransportDomain> transports) {
  const UsablePath one = paths[failed];
  const auto kind = [&](const UsablePath& path) { return transports[path.transport].transport->name(); };
  const auto later = paths.begin() + static_cast<std::ptrdiff_t>(failed) + 1;
  const auto same = [&](const auto& path) { return path.address == one.address && kind(path) == kind(one); };
  paths.erase(std::remove_if(later, paths.end(), same), paths.end());
}

std::string why_chosen(std::span<const UsablePath> paths, size_t chosen,
                       std::span<const nfs4::DevicePath> offered, std::span<const TransportDomain> transports,
                       const Error& failure) {
  const auto name_of = [&](size_t transport) { return transports[transport].transport->name(); };
  const std::string name = name_of(paths[chosen].transport);
  if (const UsablePath& wanted = paths.front(); name_of(wanted.transport) != name) {
    return fmt::format("{} {} failed: {}", name_of(wanted.transport), wanted.address, failure.to_string());
  }
  if (const std::string best = name_of(0); best != name) {
    return fmt::format("the brick offers no path by {}", best);
  }
  const bool better_offered = std::ranges::any_of(
      offered, [&](const nfs4::DevicePath& path) { return name != "verbs" && carries("verbs", path.netid); });
  if (better_offered) return fmt::format("the brick offers verbs, this mount has {} only", name);
  return "the best transport of both sides";
}

}  // namespace pnfsrdma::initiator
