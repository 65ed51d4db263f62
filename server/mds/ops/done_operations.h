// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "server/mds/ops/compound_context.h"
#include "shared/nfs4/operations.h"

namespace pnfsrdma::mds {

// In a COMPOUND that was cut off by the death of the daemon behind a change (context.done): what the
// operation answers instead of being run. A change up to that one is done, and is answered so; one behind it
// belongs to a session that is dead. Nothing: it changes nothing and runs.
std::optional<nfs4::ResultOperation> answer_as_done(CompoundContext& context,
                                                    const nfs4::ArgumentOperation& arguments);

}  // namespace pnfsrdma::mds
