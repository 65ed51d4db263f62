// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "shared/base/owned.h"
#include "shared/base/result.h"

namespace pnfsrdma::console {

// A socket that listens, and where.
struct ListeningSocket {
  FileDescriptor socket;
  std::string address;  // "127.0.0.1:8443" with the port the kernel chose, or the path
  bool local = false;   // a Unix socket
  bool loopback = false;

  // "host:port", numeric; port 0: the kernel chooses. EINVAL, EADDRINUSE, EACCES.
  static Result<ListeningSocket> tcp(const std::string& address);
  // Mode 0600. What an earlier run left behind is replaced; EADDRINUSE when somebody listens there.
  static Result<ListeningSocket> unix_path(const std::string& path);
};

// Whether "host:port" names this host alone; false for what cannot be understood.
bool is_loopback(const std::string& address);

}  // namespace pnfsrdma::console
