// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/device_path.h"

#include <charconv>
#include <string_view>

namespace pnfsrdma::initiator {

namespace {

// Cuts ".78" off the end of `text`.
std::optional<unsigned> cut_octet(std::string_view& text) {
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(dot + 1);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value > 255) return std::nullopt;
  text = text.substr(0, dot);
  return value;
}

bool carries(std::string_view transport, std::string_view netid) {
  if (netid == "tcp" || netid == "tcp6") return transport == "iwarp";
  if (netid == "rdma" || netid == "rdma6") return transport == "verbs";
  return transport == netid;  // "memory"
}

}  // namespace

std::optional<std::string> host_and_port(const std::string& universal_address) {
  std::string_view host = universal_address;
  const auto low = cut_octet(host);
  const auto high = cut_octet(host);
  if (!low || !high || host.empty()) return std::nullopt;
  const std::string port = std::to_string(*high * 256 + *low);
  const bool six = host.find(':') != std::string_view::npos;
  return six ? "[" + std::string(host) + "]:" + port : std::string(host) + ":" + port;
}

std::vector<UsablePath> usable_paths(std::span<const nfs4::DevicePath> paths,
                                     std::span<const TransportDomain> transports) {
  std::vector<UsablePath> usable;
  for (size_t i = 0; i < transports.size(); ++i) {
    const std::string name = transports[i].transport->name();
    for (const nfs4::DevicePath& path : paths) {
      if (!carries(name, path.netid)) continue;
      if (auto address = host_and_port(path.address)) usable.push_back({i, std::move(*address)});
    }
  }
  return usable;
}

}  // namespace pnfsrdma::initiator
