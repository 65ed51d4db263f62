// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cli/output/failure.h"

namespace pnfsrdma::cli {

// "https://host:port", taken apart.
struct ServerUrl {
  bool tls = true;
  std::string host;
  int port = 8443;
};

// "mds.example", "https://mds.example:8443/", "https://[::1]". http:// is taken for loopback only: a token
// must not go over a network in the clear. kUsage says what is wrong.
Outcome<ServerUrl> parse_server(std::string_view text);

}  // namespace pnfsrdma::cli
