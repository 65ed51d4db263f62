// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/brickd/config.h"
#include "shared/base/random.h"
#include "shared/base/result.h"

namespace pnfsrdma::brick {

// pool.create: makes the pool's file, of pool.size, if there is none; what is there is left alone, whatever
// it is. Made under another name first, so that a start that is cut short leaves no half of a pool. ENOSPC
// when it would take more than half of what is free on its file system.
Result<> make_first_pool(const Config& config, Random& random);

}  // namespace pnfsrdma::brick
