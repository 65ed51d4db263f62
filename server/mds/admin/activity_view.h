// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/console/inventory.h"
#include "server/mds/admin/brick_administration.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/ops/exports.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/counters.h"

namespace pnfsrdma::mds {

// Where the view looks; everything in the control loop.
struct ActivitySources {
  const Counters& counters;
  ClientTable& clients;
  const Exports& exports;
  BrickAdministration& bricks;
};

// What each client and export has done since the start: about a microsecond per client.
console::Activity view_activity(const ActivitySources& sources);
// The busiest of now, by the last name they were seen by.
std::vector<console::BusyFile> view_busy_files(const BusyFiles& files, Namespace& names, size_t count);

}  // namespace pnfsrdma::mds
