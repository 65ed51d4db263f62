// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/ops/compound_context.h"

namespace pnfsrdma::mds {

// Gives a regular file its new size: SETATTR, and OPEN that truncates or creates with a size. The layout
// module recalls, commits and zeroes; without privilege setuid and setgid go, as truncate(2) has it. May
// suspend (one question). The caller has recalled delegations. DELAY, NOSPC, IO.
Outcome<> change_size(CompoundContext& context, const Inode& inode, uint64_t size);

}  // namespace pnfsrdma::mds
