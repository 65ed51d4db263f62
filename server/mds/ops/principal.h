// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/ops/compound_context.h"

namespace pnfsrdma::mds {

// Who sent the call (RFC 8881, 2.4.3): with AUTH_SYS the uid, before any squashing; with AUTH_NONE nobody.
inline Principal principal_of(const CompoundContext& context) {
  return {.flavor = context.caller_flavor, .uid = context.caller.uid, .reserved_port = !context.high_port};
}

}  // namespace pnfsrdma::mds
