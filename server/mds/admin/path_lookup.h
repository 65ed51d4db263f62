// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/mds/meta/namespace.h"

namespace pnfsrdma::mds {

// What is at `path`, from the server's root whatever is exported; symbolic links are not followed. ENOENT, EINVAL (no
// normal path), EIO; in a run that can be repeated it may be void (request_reads.h).
Result<InodePointer> find_path(Namespace& names, const std::string& path);

}  // namespace pnfsrdma::mds
