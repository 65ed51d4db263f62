// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/tree/tree.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {

// Gives `target` the owner, group, extended attributes, ACLs, mode and times of `source`, the times last: to the very
// thing that is held, whatever happens to its name. Errors: of the calls; EPERM: the caller may not give files to that
// user or group.
Result<> make_alike(const Held& target, const Entry& source);

}  // namespace pnfsrdma::cli
