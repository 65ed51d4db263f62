// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/numbers_view.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "server/console/throughput.h"
#include "server/mds/admin/client_names.h"
#include "server/mds/grants/layout_table.h"
#include "shared/nfs4/operation_table.h"

namespace pnfsrdma::mds {

namespace {

void add_operations(const Counters& counters, console::Numbers& numbers) {
  for (const nfs4::OperationRow& row : nfs4::kOperationTable) {
    if (row.number >= Counters::kOperationsMax) continue;
    if (counters.operations[row.number] == 0 && counters.errors[row.number] == 0) continue;
    console::OperationCounter shown{.name = std::string(row.name),
                                    .count = counters.operations[row.number],
                                    .errors = counters.errors[row.number],
                                    .latency = view_histogram(counters.latency[row.number].snapshot())};
    numbers.operations.push_back(std::move(shown));
  }
}

// The process ends when a sync fails: whoever answers has a sound store, but it may have no room.
console::HealthCheck check_of(const StoreRoom& room) {
  constexpr double kWarned = 0.8;
  constexpr uint64_t kPlenty = uint64_t{8} << 30;  // is no reason to warn, whatever share of the disk it is
  if (room.full) {
    return {.name = "metadata",
            .status = console::HealthStatus::kFailed,
            .detail = fmt::format(
                "The disk of the metadata is full: {} MiB are left, in reserve. Nothing new can be "
                "created; files can be read and removed.{}",
                room.free >> 20, room.stopped ? " Changes wait until there is room." : ""),
            .fix = "Free space on that disk, or remove files; the server recovers by itself."};
  }
  if (room.used_share >= kWarned && room.free < kPlenty) {
    return {.name = "metadata",
            .status = console::HealthStatus::kWarning,
            .detail = fmt::format("The disk of the metadata is {:.0f} % full: {} of {} MiB are free.",
                                  room.used_share * 100, room.free >> 20, room.total >> 20),
            .fix = "Free space on that disk: when it is full, no files can be created."};
  }
  return {.name = "metadata",
          .status = console::HealthStatus::kOk,
          .detail = "Changes become durable.",
          .fix = {}};
}

void add_checks(const StoreRoom& room, console::Numbers& numbers) {
  numbers.checks.push_back(check_of(room));
  const bool grace = numbers.grace_seconds_left > 0;
  numbers.checks.push_back(
      {.name = "grace",
       .status = grace ? console::HealthStatus::kWarning : console::HealthStatus::kOk,
       .detail =
           grace ? fmt::format("Clients may reclaim what they held before the reboot; new opens wait {} s.",
                               numbers.grace_seconds_left)
                 : "No grace period is active.",
       .fix = grace ? "Wait: it ends when all clients have reclaimed their state, or after its time limit."
                    : ""});
}

}  // namespace

console::LatencyHistogram view_histogram(const pnfsrdma::LatencyHistogram::Snapshot& histogram) {
  return {.counts = histogram.counts, .sum_us = static_cast<uint64_t>(histogram.sum.count() / 1000)};
}

console::DirectCounters view_reported(const ReportedIo& reported) {
  return {.read_bytes = reported.read_bytes,
          .write_bytes = reported.write_bytes,
          .reads = reported.reads,
          .writes = reported.writes};
}

void add_old_handles(const std::vector<HandleKeys::OldHandles>& exports, console::Numbers& numbers) {
  std::string used;
  for (const HandleKeys::OldHandles& item : exports) {
    numbers.old_handle_uses += item.uses;
    if (item.uses == 0) continue;
    const std::chrono::sys_seconds until{std::chrono::seconds(item.until.seconds)};
    used += fmt::format("{}{} ({} times, until {:%F %H:%M} UTC)", used.empty() ? "" : ", ", item.path,
                        item.uses, until);
  }
  numbers.checks.push_back(
      {.name = "handles",
       .status = used.empty() ? console::HealthStatus::kOk : console::HealthStatus::kWarning,
       .detail =
           used.empty()
               ? "No client uses filehandles from before the upgrade."
               : "Clients use filehandles from before the upgrade, which become stale at the time given: " +
                     used + ".",
       .fix =
           used.empty() ? "" : "Unmount and mount again on clients that were mounted before the upgrade."});
}

void add_port_refusals(const Counters& counters, const Exports& exports, SteadyTime now,
                       console::Numbers& numbers) {
  // Somebody who tried once, or looked for open ports, is no condition of the server for ever.
  constexpr Milliseconds kRecent = std::chrono::hours(1);
  std::string refused;
  for (const auto& [id, refusals] : counters.port_refusals) {
    numbers.port_refusals += refusals.calls;
    const Export* item = exports.find(id);
    if (item == nullptr || item->insecure || now - refusals.last > kRecent) continue;
    refused += fmt::format("{}{} ({} requests, last from {})", refused.empty() ? "" : ", ", item->path,
                           refusals.calls, refusals.host);
  }
  numbers.checks.push_back(
      {.name = "ports",
       .status = refused.empty() ? console::HealthStatus::kOk : console::HealthStatus::kWarning,
       .detail = refused.empty() ? "No request was refused for its port in the last hour."
                                 : "Requests from ports above 1023 were refused: " + refused + ".",
       .fix = refused.empty() ? ""
                              : "Mount as root; for mounts by users, user-space clients, rootless "
                                "containers and NAT: pnfsrdma export edit PATH --insecure --all-squash"});
}

void add_broken_paths(const PathReports& paths, const ClientTable& clients, SteadyTime now,
                      console::Numbers& numbers) {
  std::string broken;
  for (const PathReports::Broken& path : paths.current(now)) {
    const auto client = clients.find(path.client);
    const std::string id = uuid_text(path.brick);
    const auto brick = std::ranges::find(numbers.bricks, id, &console::Brick::id);
    if (!client || brick == numbers.bricks.end() || !brick->usable()) continue;
    brick->unreached_by.push_back(client_name(*client));
    broken += fmt::format("{}{} does not reach brick {} ({}, for {} s)", broken.empty() ? "" : ", ",
                          brick->unreached_by.back(), brick->name.empty() ? brick->id : brick->name,
                          nfs4::to_string(path.report.error),
                          std::chrono::duration_cast<std::chrono::seconds>(now - path.report.first).count());
  }
  numbers.checks.push_back(
      {.name = "paths",
       .status = broken.empty() ? console::HealthStatus::kOk : console::HealthStatus::kWarning,
       .detail = broken.empty() ? "No client reports that it cannot reach a brick."
                                : "Reads and writes go through this server: " + broken + ".",
       .fix = broken.empty() ? ""
                             : "On the client: pnfsrdma doctor. The firewall of the brick's host must admit "
                               "ports 20051 (TCP) and 20052, and data.listen or data.advertise of the brick "
                               "must name an address that clients reach."});
}

void add_name_service(const UserGroups& groups, console::Numbers& numbers) {
  const std::optional<Error>& failure = groups.failure();
  numbers.checks.push_back(
      {.name = "groups",
       .status = failure ? console::HealthStatus::kWarning : console::HealthStatus::kOk,
       .detail = failure
                     ? "The name service of this host does not answer (" + failure->to_string() +
                           "): where exports have manage_gids, users whose groups are not known have to wait."
                     : fmt::format("For exports with manage_gids, the groups of {} users are known.",
                                   groups.remembered()),
       .fix = failure ? "On this host: getent passwd UID, id USER; see what /etc/nsswitch.conf names" : ""});
}

void add_memory(const rpc::MemoryBudget& memory, console::Numbers& numbers) {
  numbers.memory_bytes = memory.held();
  numbers.memory_budget_bytes = memory.limits().bytes;
  numbers.memory_waiting = memory.waiting();
  numbers.connections = memory.connections();
  numbers.connections_refused = memory.refused();
  numbers.connections_ended = memory.ended();
  const bool short_of_it = memory.waiting() > 0 || memory.held() >= memory.limits().bytes ||
                           memory.state() >= memory.state_limit();
  numbers.checks.push_back(
      {.name = "memory",
       .status = short_of_it ? console::HealthStatus::kWarning : console::HealthStatus::kOk,
       .detail = fmt::format(
           "Requests and state of clients take {} of {} MiB ({} MiB: opens, locks, delegations), on {} "
           "connections; {} wait for memory. Since the start, {} connections were refused and {} closed for "
           "lack of it.",
           memory.held() >> 20, memory.limits().bytes >> 20, memory.state() >> 20, memory.connections(),
           memory.waiting(), memory.refused(), memory.ended()),
       .fix = short_of_it
                  ? "journalctl PNFSRDMA_EVENT=connection-ended (or connection-refused, state-refused) "
                    "shows which clients. If they are legitimate, "
                    "raise memory_budget_mib or memory_per_address_mib."
                  : ""});
}

console::LoopTurns view_turns(const TurnTimes& turns, SteadyTime now) {
  const TurnTimes::Recent recent = turns.recent(now);
  return {
      .times = view_histogram(turns.times()),
      .slow = turns.slow(),
      .longest_ms = static_cast<uint64_t>(std::chrono::duration_cast<Milliseconds>(recent.longest).count()),
      .stalled = recent.stalled};
}

// One stall is over when it is seen (a machine that was paused); several are a condition.
console::HealthCheck check_of_turns(const std::string& who, const console::LoopTurns& turns) {
  constexpr uint64_t kStallsBorne = 2;
  const bool stalls = turns.stalled > kStallsBorne;
  std::string detail = fmt::format(
      "{}: 99.99 % of the turns of the main loop took at most {:.1f} ms; {} took more than 100 ms since the "
      "start.",
      who, console::percentile(turns.times, 0.9999) / 1000, turns.slow);
  if (turns.longest_ms > 0) {
    detail +=
        fmt::format(" In the last minutes all clients waited for up to {} ms, {} times for more than 1 s.",
                    turns.longest_ms, turns.stalled);
  }
  return {.name = "loop",
          .status = stalls ? console::HealthStatus::kWarning : console::HealthStatus::kOk,
          .detail = std::move(detail),
          .fix = stalls ? "journalctl PNFSRDMA_EVENT=slow-turn shows what it was busy with." : ""};
}

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
      .reported = view_reported(counters.reported),
      .delegations_granted = counters.delegations_granted,
      .delegations_recalled = counters.delegations_recalled,
      .delegations_revoked = counters.delegations_revoked,
      .clients_expired = counters.clients_expired,
      .clients = static_cast<uint32_t>(sources.clients.size()),
      .sessions = static_cast<uint32_t>(sources.sessions.size()),
      .opens = static_cast<uint32_t>(sources.opens.size()),
      .locks = static_cast<uint32_t>(sources.locks.size()),
      .delegations = static_cast<uint32_t>(sources.delegations.size()),
      .running_compounds =
          sources.compounds == nullptr ? 0 : static_cast<uint32_t>(sources.compounds->running()),
      .unsynced_commits = sources.store.last_namespace_sequence() -
                          std::min(sources.store.last_namespace_sequence(), sources.store.synced_sequence()),
      .bricks = {},
      .checks = {}};
  add_operations(counters, numbers);
  numbers.layouts = static_cast<uint32_t>(sources.layouts.table().layouts());
  numbers.grants = static_cast<uint32_t>(sources.layouts.table().grants());
  const ReadCounts& reads = sources.store.read_counts();
  numbers.metadata_reads = {.misses = reads.misses,
                            .blocking = reads.blocking,
                            .fetches = view_histogram(reads.fetch_latency.snapshot())};
  const StoreRoom room = sources.store.room();
  numbers.metadata_disk_bytes = room.total;
  numbers.metadata_disk_free_bytes = room.free;
  add_checks(room, numbers);
  return numbers;
}

}  // namespace pnfsrdma::mds
