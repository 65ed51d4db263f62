// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/tree/tree.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {

// Gives `target` the owner, group, mode, extended attributes, ACLs and times of `source`, the times last. Errors: of
// the calls; EPERM: the caller may not give files to that user or group.
Result<> make_alike(const Entry& target, const Entry& source);

}  // namespace pnfsrdma::cli
