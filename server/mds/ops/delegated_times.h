// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "server/mds/ops/compound_context.h"
#include "server/mds/ops/settable_attributes.h"
#include "server/mds/state/delegation_table.h"

namespace pnfsrdma::mds {

// What of the times that the holder of a delegation tells is taken (RFC 9754, 5): no access before the one on record,
// no change of the data before the delegation was given (these are ignored), and nothing past `now`, which it is then.
// What is on record already is left out.
HeldTimes believed(const DelegationState& held, const Inode& inode, const HeldTimes& told, WallTime now);

// SETATTR of time_deleg_access and time_deleg_modify by this stateid, judged so. BAD_STATEID: it is of no delegation
// whose holder keeps the times. OPENMODE: the data's time, and it is one to read.
Outcome<HeldTimes> told_times(const CompoundContext& context, const nfs4::Stateid& stateid,
                              const Inode& inode, const HeldTimes& wanted);

// On record. Nothing happens where there are none.
Outcome<> take_times(const CompoundContext& context, const Inode& inode, const HeldTimes& times);

}  // namespace pnfsrdma::mds
