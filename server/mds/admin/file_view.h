// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/console/inventory.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/state/open_state.h"

namespace pnfsrdma::mds {

// The file at `path`, from the server's root whatever is exported; symbolic links are not followed. ENOENT,
// EINVAL (no normal path), EIO. Extents name no brick: the caller knows them.
Result<console::File> view_file(Namespace& names, const OpenTable& opens, const std::string& path);

}  // namespace pnfsrdma::mds
