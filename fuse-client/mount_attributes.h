// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuse-client/mount_status.h"

namespace pnfsrdma::fuse_client {

// The mount's own status as extended attributes of its root, by their whole names.
std::optional<std::string> mount_attribute(const MountStatus& status, std::string_view name);
// Those that getfattr -d shows.
std::vector<std::string> listed_mount_attributes();

}  // namespace pnfsrdma::fuse_client
