// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/mds/ops/handle_keys.h"
#include "server/mds/state/delegations.h"

namespace pnfsrdma::mds {

// Delegations end when the handles end under which they were given: their holders open files by these without asking,
// and would do so for as long as nobody else wants the file. Both look at some a turn of the loop; control loop only,
// and both arguments outlive the loop's work.

// Behind a change of exports, and at a start, which may be behind one: recalls those whose handles are not good any
// more. One of an export that is gone cannot be returned, and ends with the answer to its recall.
void recall_under_ended_handles(Delegations& delegations, const HandleKeys& handles);

// An export lets its clients do less than before: recalls those that were given through it.
void recall_of_export(Delegations& delegations, const HandleKeys& handles, uint16_t export_id);

}  // namespace pnfsrdma::mds
