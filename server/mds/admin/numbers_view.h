// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/console/inventory.h"
#include "server/mds/admin/data_plane.h"
#include "server/mds/bricks/path_reports.h"
#include "server/mds/meta/key_value.h"
#include "server/mds/ops/compound.h"
#include "server/mds/ops/handle_keys.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/delegation_table.h"
#include "server/mds/state/grace.h"
#include "server/mds/state/lock_table.h"
#include "server/mds/state/open_state.h"
#include "server/mds/state/session_table.h"
#include "shared/rpc/memory_budget.h"

namespace pnfsrdma::mds {

// Where the view looks; everything in the control loop.
struct NumbersSources {
  const Clock& clock;
  const Counters& counters;
  const KeyValueStore& store;
  const ClientTable& clients;
  const SessionTable& sessions;
  const OpenTable& opens;
  const LockTable& locks;
  const DelegationTable& delegations;
  GracePeriod& grace;
  DataPlane& layouts;
  const Compounds* compounds;  // null: not serving yet
  SteadyTime started;
  uint64_t start_count = 0;
};

console::LatencyHistogram view_histogram(const pnfsrdma::LatencyHistogram::Snapshot& histogram);
console::DirectCounters view_reported(const ReportedIo& reported);

// What peers make the server hold, and whether it has to keep them off.
void add_memory(const rpc::MemoryBudget& memory, console::Numbers& numbers);

// Which exports still take filehandles of version 1, and whether anybody has used one.
void add_old_handles(const std::vector<HandleKeys::OldHandles>& exports, console::Numbers& numbers);

// Which exports have refused calls because of their port (Counters::port_refusals), and whether that is a
// matter still.
void add_port_refusals(const Counters& counters, const Exports& exports, SteadyTime now,
                       console::Numbers& numbers);
// Which clients say that they cannot reach a brick: its `unreached_by`, and whether that is a matter. A brick that is
// away has a check of its own.
void add_broken_paths(const PathReports& paths, const ClientTable& clients, SteadyTime now,
                      console::Numbers& numbers);
// Whether the groups of users can be known, where exports want them.
void add_name_service(const UserGroups& groups, console::Numbers& numbers);

// The turns of a control loop, as the console shows them.
console::LoopTurns view_turns(const TurnTimes& turns, SteadyTime now);
// Whether the loop of `who` ("This server", "Brick UUID") leaves others waiting.
console::HealthCheck check_of_turns(const std::string& who, const console::LoopTurns& turns);

// Counters and gauges of now, and whether all is well. Bricks are left to the caller.
console::Numbers view_numbers(const NumbersSources& sources);

}  // namespace pnfsrdma::mds
