// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace pnfsrdma::cli {

// Where the API is and who asks. The environment stands behind each that is empty: PNFSRDMA_SERVER,
// PNFSRDMA_TOKEN_FILE (or the token itself in PNFSRDMA_TOKEN), PNFSRDMA_CA.
struct ApiOptions {
  std::string socket = "/run/pnfsrdma/console.sock";
  std::string server;      // "https://mds.example:8443"; empty: the socket
  std::string token_file;  // first line: the token
  std::string ca;          // certificates to trust, PEM; empty: the system's
  bool insecure = false;   // any certificate will do
};

}  // namespace pnfsrdma::cli
