// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/mds/admin/config.h"

namespace pnfsrdma::mds {

// "unix:/path" and "tcp:host:port" of the configuration, as brick::BrickClientOptions takes them.
inline std::string brick_address(const std::string& configured) {
  for (const std::string prefix : {"unix:", "tcp:"}) {
    if (configured.starts_with(prefix)) return configured.substr(prefix.size());
  }
  return configured;
}

// Where the metadata engine keeps its files.
inline std::string metadata_path(const Config& config) {
  return config.data_directory + "/metadata";
}

}  // namespace pnfsrdma::mds
