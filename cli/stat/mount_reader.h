// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/failure.h"
#include "cli/stat/mount_list.h"

namespace pnfsrdma::cli {

// What a mount told at one moment: the JSON of its status and of its counters (fuse-client/README.md).
struct MountReading {
  Mounted mounted;
  nlohmann::json status;
  nlohmann::json statistics;
};

// Asks mounts of this host about themselves: by the extended attributes of their roots, which costs no call
// to a server.
class MountReader {
 public:
  // The mounts meant: the one that holds `path`, or all when it is empty. kNotFound when there is none.
  static Outcome<std::vector<Mounted>> find(const std::string& path);

  // kUnreachable: the mount's process is gone. kNotPermitted: it is another user's.
  static Outcome<MountReading> read(const Mounted& mounted);
  // Prometheus text.
  static Outcome<std::string> metrics(const Mounted& mounted);
};

}  // namespace pnfsrdma::cli
