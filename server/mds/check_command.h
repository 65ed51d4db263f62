// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/admin/config.h"

namespace pnfsrdma::mds {

// `pnfsrdma-mdsd --check`: with the daemon not running, checks the whole metadata store and, if the brick
// answers, that the brick's blocks and the extents agree. Prints a report. 0: sound; 1: problems; 2: the
// store cannot be opened.
int run_check(const Config& config);

// `pnfsrdma-mdsd --accept-metadata-loss`: with the daemon not running, makes a store usable again whose log
// has lost what was synced. What it could not read is gone; a copy of the store as it was stays beside it. A
// store that has lost nothing is only opened and closed. 0; 2: the store cannot be opened or copied.
int run_accept_loss(const Config& config);

}  // namespace pnfsrdma::mds
