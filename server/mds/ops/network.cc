// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/network.h"

#include <arpa/inet.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

namespace pnfsrdma::mds {

namespace {

inline constexpr unsigned kMappedBits = 96;  // ::ffff:0:0/96

struct Address {
  std::array<uint8_t, 16> bytes{};
  bool ipv4 = false;
};

std::optional<Address> parse_address(std::string_view host) {
  const std::string text(host);
  Address address;
  if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  if (inet_pton(AF_INET, text.c_str(), address.bytes.data() + 12) != 1) return std::nullopt;
  address.bytes[10] = address.bytes[11] = 0xff;
  address.ipv4 = true;
  return address;
}

}  // namespace

Result<Network> Network::parse(std::string_view text) {
  Network network;
  network.text_ = text;
  if (text == "*") return network;
  const size_t slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  if (!address) return fail(EINVAL, "client network \"" + network.text_ + "\": not a numeric address");
  const unsigned width = address->ipv4 ? 32 : 128;
  unsigned bits = width;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || bits > width) {
      return fail(EINVAL, "client network \"" + network.text_ + "\": the prefix length must be 0 to " +
                              std::to_string(width));
    }
  }
  network.address_ = address->bytes;
  network.bits_ = address->ipv4 ? kMappedBits + bits : bits;
  return network;
}

bool Network::contains(std::string_view host) const {
  if (bits_ == 0 && text_ == "*") return true;
  const auto address = parse_address(host);
  if (!address) return false;
  const unsigned whole = bits_ / 8;
  if (std::memcmp(address->bytes.data(), address_.data(), whole) != 0) return false;
  const unsigned rest = bits_ % 8;
  const unsigned mask = 0xff00U >> rest & 0xff;
  return rest == 0 || ((address->bytes[whole] ^ address_[whole]) & mask) == 0;
}

std::string_view host_of(std::string_view peer) {
  if (peer.starts_with('[')) return peer.substr(1, peer.find(']') - 1);
  return peer.substr(0, peer.rfind(':'));
}

uint16_t port_of(std::string_view peer) {
  const size_t colon = peer.rfind(':');
  uint16_t port = 0;
  if (colon != std::string_view::npos)
    std::from_chars(peer.data() + colon + 1, peer.data() + peer.size(), port);
  return port;
}

}  // namespace pnfsrdma::mds
