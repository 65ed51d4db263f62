// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/numbers_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/mds/layout/layout_table.h"
#include "shared/nfs4/operation_table.h"

namespace pnfsrdma::mds {

namespace {

void add_operations(const Counters& counters, console::Numbers& numbers) {
  for (const nfs4::OperationRow& row : nfs4::kOperationTable) {
    if (row.number >= Counters::kOperationsMax) continue;
    if (counters.operations[row.number] == 0 && counters.errors[row.number] == 0) continue;
    const auto latency = counters.latency[row.number].snapshot();
    console::OperationCounter shown{.name = std::string(row.name),
                                    .count = counters.operations[row.number],
                                    .errors = counters.errors[row.number],
                                    .latency = {}};
    shown.latency.counts = latency.counts;
    shown.latency.sum_us = static_cast<uint64_t>(latency.sum.count() / 1000);
    numbers.operations.push_back(std::move(shown));
  }
}

void add_layouts(const LayoutTable& table, console::Numbers& numbers) {
  for (const uint64_t inode : table.files()) {
    for (const uint64_t client : table.clients_of_file(inode)) {
      const HeldLayout* held = table.find(inode, client);
      if (held == nullptr) continue;
      ++numbers.layouts;
      numbers.grants += static_cast<uint32_t>(held->grants().size());
    }
  }
}

void add_checks(console::Numbers& numbers) {
  // The process ends when a sync fails: whoever answers has a sound store.
  numbers.checks.push_back(
      {.name = "metadata", .status = "ok", .detail = "Commits become durable.", .fix = {}});
  const bool grace = numbers.grace_seconds_left > 0;
  numbers.checks.push_back(
      {.name = "grace",
       .status = grace ? "warning" : "ok",
       .detail =
           grace ? fmt::format("Clients may reclaim what they held before the reboot; new opens wait {} s.",
                               numbers.grace_seconds_left)
                 : "No grace period runs.",
       .fix = grace ? "Wait: it ends when all clients have come back, or with its time." : ""});
}

}  // namespace

console::Numbers view_numbers(const NumbersSources& sources) {
  const Counters& counters = sources.counters;
  console::Numbers numbers{
      .time = sources.clock.wall_now(),
      .uptime_seconds = static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::seconds>(sources.clock.now() - sources.started).count()),
      .start_count = sources.start_count,
      .grace_seconds_left = sources.grace.seconds_left(),
      .operations = {},
      .compounds = counters.compounds,
      .replays = counters.replays,
      .illegal_operations = counters.illegal_operations,
      .mds_read_bytes = counters.bytes_read,
      .mds_write_bytes = counters.bytes_written,
      .layouts_granted = counters.layouts_granted,
      .layouts_recalled = counters.layouts_recalled,
      .layouts_revoked = counters.layouts_revoked,
      .clients_expired = counters.clients_expired,
      .clients = static_cast<uint32_t>(sources.clients.size()),
      .sessions = static_cast<uint32_t>(sources.sessions.size()),
      .opens = static_cast<uint32_t>(sources.opens.size()),
      .locks = static_cast<uint32_t>(sources.locks.size()),
      .running_compounds =
          sources.compounds == nullptr ? 0 : static_cast<uint32_t>(sources.compounds->running()),
      .unsynced_commits = sources.store.last_namespace_sequence() -
                          std::min(sources.store.last_namespace_sequence(), sources.store.synced_sequence()),
      .bricks = {},
      .checks = {}};
  add_operations(counters, numbers);
  add_layouts(sources.layouts.table(), numbers);
  add_checks(numbers);
  return numbers;
}

}  // namespace pnfsrdma::mds
