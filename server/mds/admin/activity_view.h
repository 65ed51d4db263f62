// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "server/console/administration.h"
#include "server/console/inventory.h"
#include "server/mds/admin/brick_administration.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/ops/exports.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/counters.h"
#include "shared/base/event_loop.h"

namespace pnfsrdma::mds {

// Where the view looks; everything in the control loop.
struct ActivitySources {
  EventLoop& loop;
  const Counters& counters;
  ClientTable& clients;
  const Exports& exports;
  BrickAdministration& bricks;
};

// What each client and export has done since the start: kIdsPerTurn clients a turn of the loop, about a microsecond
// for each. So it is no snapshot: each client's counters are of its own turn, milliseconds apart, and one that comes
// meanwhile is left out. Counters only rise, so differences between two views miss nothing and count nothing twice.
// What the bricks have told is left to whoever asked. `done` is not called when `alive` has gone; the sources live as
// long as that.
void view_activity(const ActivitySources& sources, std::weak_ptr<const void> alive,
                   console::Administration::Done<console::Administration::Later<console::Activity>> done);
// The busiest of now, by the last name they were seen by.
std::vector<console::BusyFile> view_busy_files(const BusyFiles& files, Namespace& names, size_t count);

}  // namespace pnfsrdma::mds
