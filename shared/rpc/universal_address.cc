// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/universal_address.h"

#include <arpa/inet.h>

#include <cerrno>
#include <charconv>
#include <optional>

namespace pnfsrdma::rpc {
namespace {

// Cuts ".n", n at most 255, from the end of `text`.
std::optional<unsigned> cut_byte(std::string_view& text) {
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(dot + 1);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value > 255) return std::nullopt;
  text = text.substr(0, dot);
  return value;
}

}  // namespace

std::string to_universal_address(const SocketAddress& address) {
  if (address.family() != AF_INET && address.family() != AF_INET6) return "";
  const unsigned port = address.port();
  return address.host() + "." + std::to_string(port >> 8) + "." + std::to_string(port & 255);
}

std::string netid_of(const SocketAddress& address, bool rdma) {
  const std::string base = rdma ? "rdma" : "tcp";
  return address.family() == AF_INET6 ? base + "6" : base;
}

Result<SocketAddress> from_universal_address(std::string_view text) {
  std::string_view host = text;
  const std::optional<unsigned> low = cut_byte(host);
  const std::optional<unsigned> high = low ? cut_byte(host) : std::nullopt;
  in6_addr ignored{};
  const std::string name(host);
  const bool is_v6 = inet_pton(AF_INET6, name.c_str(), &ignored) == 1;
  if (!high || (!is_v6 && inet_pton(AF_INET, name.c_str(), &ignored) != 1)) {
    return fail(EINVAL, "universal address " + std::string(text));
  }
  const std::string port = std::to_string(*high << 8 | *low);
  return SocketAddress::parse(is_v6 ? "[" + name + "]:" + port : name + ":" + port);
}

}  // namespace pnfsrdma::rpc
