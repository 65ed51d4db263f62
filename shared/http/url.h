// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pnfsrdma::http {

// Where an HTTP server is.
struct Url {
  bool tls = true;
  std::string host;  // a name or an address, an IPv6 one without its brackets
  uint16_t port = 0;
  bool operator==(const Url&) const = default;
};

// "https://host:port" or "http://host:port"; an IPv6 address in brackets (RFC 3986, 3.2.2). Without a port:
// the scheme's. nullopt: it is none, or has more than that.
std::optional<Url> parse_url(std::string_view text);

}  // namespace pnfsrdma::http
