// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "shared/base/result.h"

namespace pnfsrdma::mds {

// A set of hosts as exports(5) writes it: "10.0.0.0/8", "2001:db8::/32", "192.168.1.7" or "*". No host names:
// they would have to be looked up. A value.
class Network {
 public:
  // EINVAL with what is wrong.
  static Result<Network> parse(std::string_view text);

  // `host` is a numeric address, as rpc::Connection::peer() gives it without the port. An IPv4 address and
  // the same one mapped into IPv6 are one. False for anything that is not an address.
  bool contains(std::string_view host) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::array<uint8_t, 16> address_{};  // IPv4 as ::ffff:a.b.c.d
  unsigned bits_ = 0;                  // of address_ that have to agree
};

// "192.0.2.7" of "192.0.2.7:1023", "::1" of "[::1]:1023".
std::string_view host_of(std::string_view peer);
// 1023 of the same; 0 where there is none ("unix").
uint16_t port_of(std::string_view peer);

}  // namespace pnfsrdma::mds
