// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/admin/config.h"

namespace pnfsrdma::mds {

// `pnfsrdma-mdsd --check`: with the daemon not running, checks the whole metadata store and, if the brick
// answers, that the brick's blocks and the extents agree. Prints a report. 0: sound; 1: problems; 2: the
// store cannot be opened.
int run_check(const Config& config);

}  // namespace pnfsrdma::mds
