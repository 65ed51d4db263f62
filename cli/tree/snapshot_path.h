// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/output/failure.h"

namespace pnfsrdma::cli {

// A path in a snapshot, and that of which it is a snapshot. Both without links in front of the last name.
struct SnapshotPath {
  std::string path;
  std::string living;
};

// kUsage: it is not below .snapshots/NAME of a mount of pnfsrdma-fuse, or there is no such thing.
Outcome<SnapshotPath> snapshot_path(const std::string& given);

// The absolute path, without links in front of the last name, which itself need not be there. kUsage: no such
// directory.
Outcome<std::string> absolute_path(const std::string& given);

// Whether that, or what would be made there, belongs to the list of snapshots or to one of them.
bool is_in_a_snapshot(const std::string& absolute);

}  // namespace pnfsrdma::cli
