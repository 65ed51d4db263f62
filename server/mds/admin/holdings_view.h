// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "server/console/administration.h"
#include "server/console/inventory.h"
#include "server/mds/admin/data_plane.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/delegation_table.h"
#include "server/mds/state/lock_table.h"
#include "server/mds/state/open_state.h"
#include "shared/base/clock.h"
#include "shared/base/event_loop.h"

namespace pnfsrdma::mds {

// Where the view looks; everything in the control loop.
struct HoldingsSources {
  EventLoop& loop;
  const Clock& clock;
  ClientTable& clients;
  OpenTable& opens;
  const LockTable& locks;
  const DelegationTable& delegations;
  DataPlane& layouts;
  Namespace& names;
};

// Clients by id with their sessions, and layouts by client and inode with their grants: kIdsPerTurn clients a turn of
// the loop, then kLayoutsViewedPerTurn layouts (fewer with many grants, layout_walk.h); one that comes or goes
// meanwhile is there or not. What the bricks tell, names, sorting and sums are left to whoever asked. `done` is not
// called when `alive` has gone; the sources live as long as that.
void view_holdings(const HoldingsSources& sources, std::weak_ptr<const void> alive,
                   console::Administration::Done<console::Administration::Later<console::Holdings>> done);

inline constexpr size_t kLayoutsViewedPerTurn = 256;

}  // namespace pnfsrdma::mds
