// SPDX-License-Identifier: Apache-2.0
#include "server/console/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <utility>
#include <vector>

#include "server/console/inventory_names.h"

namespace pnfsrdma::console {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<std::pair<std::string, std::string>>;

// Families in the order they are begun; values go to the newest.
class Exposition {
 public:
  Exposition& counter(const char* name, const char* help) { return begin(name, help, MetricType::Counter); }
  Exposition& gauge(const char* name, const char* help) { return begin(name, help, MetricType::Gauge); }
  Exposition& histogram(const char* name, const char* help) {
    return begin(name, help, MetricType::Histogram);
  }

  Exposition& value(double value, const Labels& labels = {}) {
    ClientMetric& metric = add(labels);
    if (families_.back().type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    return *this;
  }
  void value(const LatencyHistogram& histogram, const Labels& labels) {
    ClientMetric::Histogram& metric = add(labels).histogram;
    for (size_t i = 0; i < histogram.counts.size(); ++i) {
      metric.sample_count += histogram.counts[i];
      const bool last = i == LatencyHistogram::kBoundsUs.size();
      metric.bucket.push_back({.cumulative_count = metric.sample_count,
                               .upper_bound = last ? std::numeric_limits<double>::infinity()
                                                   : LatencyHistogram::kBoundsUs[i] / 1e6});
    }
    metric.sample_sum = static_cast<double>(histogram.sum_us) / 1e6;
  }

  // A family without values is left out.
  std::string text() {
    std::erase_if(families_, [](const MetricFamily& family) { return family.metric.empty(); });
    return prometheus::TextSerializer().Serialize(families_);
  }

 private:
  Exposition& begin(const char* name, const char* help, MetricType type) {
    families_.push_back({.name = name, .help = help, .type = type, .metric = {}});
    return *this;
  }
  ClientMetric& add(const Labels& labels) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    for (const auto& [name, value] : labels) metric.label.push_back({.name = name, .value = value});
    return metric;
  }

  std::vector<MetricFamily> families_;
};

double number(uint64_t value) {
  return static_cast<double>(value);
}

void add_operations(Exposition& out, const Numbers& numbers) {
  out.counter("pnfsrdma_mds_operations_total", "NFS operations begun.");
  for (const auto& operation : numbers.operations)
    out.value(number(operation.count), {{"operation", operation.name}});
  out.counter("pnfsrdma_mds_operation_errors_total", "NFS operations answered with an error.");
  for (const auto& operation : numbers.operations)
    out.value(number(operation.errors), {{"operation", operation.name}});
  out.histogram("pnfsrdma_mds_operation_seconds", "From the beginning of an operation to its result.");
  for (const auto& operation : numbers.operations)
    out.value(operation.latency, {{"operation", operation.name}});
  out.counter("pnfsrdma_mds_compounds_total", "COMPOUND calls begun.").value(number(numbers.compounds));
  out.counter("pnfsrdma_mds_replays_total", "Calls answered from the reply cache.")
      .value(number(numbers.replays));
  out.counter("pnfsrdma_mds_illegal_operations_total", "Operations that NFS does not define.")
      .value(number(numbers.illegal_operations));
  out.counter(
         "pnfsrdma_mds_old_handle_uses_total",
         "Filehandles of version 1 that were accepted: their clients have not mounted since the upgrade.")
      .value(number(numbers.old_handle_uses));
  out.counter("pnfsrdma_mds_port_refusals_total",
              "Calls from ports above 1023 to exports that are not insecure, refused.")
      .value(number(numbers.port_refusals));
  out.counter("pnfsrdma_mds_bytes_total", "File data that went through the MDS.")
      .value(number(numbers.mds_read_bytes), {{"direction", "read"}})
      .value(number(numbers.mds_write_bytes), {{"direction", "write"}});
}

void add_state(Exposition& out, const Numbers& numbers) {
  out.counter("pnfsrdma_mds_layouts_granted_total", "Layouts granted.")
      .value(number(numbers.layouts_granted));
  out.counter("pnfsrdma_mds_recalls_total", "Layouts asked back.").value(number(numbers.layouts_recalled));
  out.counter("pnfsrdma_mds_revocations_total", "Layouts taken by force.")
      .value(number(numbers.layouts_revoked));
  out.counter("pnfsrdma_mds_reported_operations_total",
              "What clients report (LAYOUTSTATS) that they did by their layouts, past the servers.")
      .value(number(numbers.reported.reads), {{"direction", "read"}})
      .value(number(numbers.reported.writes), {{"direction", "write"}});
  out.counter("pnfsrdma_mds_reported_bytes_total", "The same in bytes.")
      .value(number(numbers.reported.read_bytes), {{"direction", "read"}})
      .value(number(numbers.reported.write_bytes), {{"direction", "write"}});
  out.counter("pnfsrdma_mds_delegations_granted_total", "Delegations granted.")
      .value(number(numbers.delegations_granted));
  out.counter("pnfsrdma_mds_delegations_recalled_total", "Delegations asked back.")
      .value(number(numbers.delegations_recalled));
  out.counter("pnfsrdma_mds_delegations_revoked_total", "Delegations taken by force.")
      .value(number(numbers.delegations_revoked));
  out.counter("pnfsrdma_mds_lease_expirations_total", "Clients whose lease ran out.")
      .value(number(numbers.clients_expired));
  out.gauge("pnfsrdma_mds_clients", "Clients known.").value(numbers.clients);
  out.gauge("pnfsrdma_mds_sessions", "NFS sessions.").value(numbers.sessions);
  out.gauge("pnfsrdma_mds_opens", "Files held open by a client.").value(numbers.opens);
  out.gauge("pnfsrdma_mds_locks", "Byte-range locks held.").value(numbers.locks);
  out.gauge("pnfsrdma_mds_layouts", "Layouts held.").value(numbers.layouts);
  out.gauge("pnfsrdma_mds_delegations", "Delegations held.").value(numbers.delegations);
  out.gauge("pnfsrdma_mds_grants", "Handles to memory that are alive.").value(numbers.grants);
  out.gauge("pnfsrdma_mds_snapshots", "Snapshots, with those being deleted.").value(numbers.snapshots);
  out.gauge("pnfsrdma_mds_snapshot_bytes", "Memory that no file has any more, but a snapshot.")
      .value(number(numbers.snapshot_bytes));
  out.counter("pnfsrdma_mds_scheduled_snapshots_total", "Snapshots that the schedule has taken.")
      .value(number(numbers.scheduled_snapshots));
  out.counter("pnfsrdma_mds_scheduled_snapshot_failures_total", "Tries of the schedule that took none.")
      .value(number(numbers.scheduled_snapshot_failures));
  out.gauge("pnfsrdma_mds_snapshot_overdue_seconds",
            "For so long a scheduled snapshot has been due that could not be taken; 0: none.")
      .value(number(numbers.snapshot_overdue_seconds));
  out.gauge("pnfsrdma_mds_compounds_running", "COMPOUND calls begun and not answered.")
      .value(numbers.running_compounds);
  out.gauge("pnfsrdma_mds_metadata_unsynced_commits", "Metadata commits that are not durable yet.")
      .value(number(numbers.unsynced_commits));
  out.gauge("pnfsrdma_mds_memory_budget_bytes", "Limit on the memory held for peers (memory_budget_mib).")
      .value(number(numbers.memory_budget_bytes));
  out.gauge("pnfsrdma_mds_memory_held_bytes",
            "Memory held for peers: requests, unsent replies, reply caches.")
      .value(number(numbers.memory_bytes));
  out.gauge("pnfsrdma_mds_memory_waiting_connections", "Connections not read from because of the budget.")
      .value(number(numbers.memory_waiting));
  out.gauge("pnfsrdma_mds_connections", "Connections that carry calls.").value(number(numbers.connections));
  out.counter("pnfsrdma_mds_connections_refused_total",
              "Connections refused by a limit of memory or address.")
      .value(number(numbers.connections_refused));
  out.counter("pnfsrdma_mds_connections_ended_total",
              "Connections ended for a stalled request or their memory.")
      .value(number(numbers.connections_ended));
  if (numbers.metadata_disk_bytes > 0) {
    out.gauge("pnfsrdma_mds_metadata_disk_bytes", "Size of the file system under the metadata.")
        .value(number(numbers.metadata_disk_bytes));
    out.gauge("pnfsrdma_mds_metadata_disk_free_bytes", "Free space on it, without the MDS's reserve.")
        .value(number(numbers.metadata_disk_free_bytes));
  }
  out.gauge("pnfsrdma_mds_grace_seconds_left", "Time left in the grace period.")
      .value(number(numbers.grace_seconds_left));
  out.gauge("pnfsrdma_mds_uptime_seconds", "Since the start of the MDS.")
      .value(number(numbers.uptime_seconds));
}

void add_metadata_reads(Exposition& out, const MetadataReads& reads) {
  out.counter("pnfsrdma_mds_metadata_read_misses_total", "Reads of metadata that were not in memory.")
      .value(number(reads.misses));
  out.counter("pnfsrdma_mds_metadata_blocking_reads_total",
              "Of them, reads of the disk in the control loop, which blocks all requests.")
      .value(number(reads.blocking));
  out.histogram("pnfsrdma_mds_metadata_fetch_seconds",
                "Reads of the disk for one request, which waits, outside of the control loop.")
      .value(reads.fetches, {});
}

// Nothing where the metadata are on one host only.
void add_cluster(Exposition& out, const Cluster& cluster) {
  out.gauge("pnfsrdma_mds_log_position", "The last value of the metadata's log in etcd.")
      .value(number(cluster.position));
  out.gauge("pnfsrdma_mds_log_trimmed_position", "Up to here the log is trimmed.")
      .value(number(cluster.trimmed));
  out.gauge("pnfsrdma_mds_log_window_bytes", "Of the log's values that are not trimmed.")
      .value(number(cluster.window_bytes));
  out.gauge("pnfsrdma_mds_log_window_bytes_max", "Above it the log waits for no server that does not follow.")
      .value(number(cluster.window_bytes_max));
  out.gauge("pnfsrdma_mds_log_behind", "Values of the log that a server does not have on its medium yet.");
  for (const ClusterServer& server : cluster.servers)
    out.value(number(server.behind), {{"server", server.name}});
  out.gauge("pnfsrdma_mds_log_server_up", "1 when that server leads or follows.");
  for (const ClusterServer& server : cluster.servers)
    out.value(server.state == ClusterServerState::kAway ? 0 : 1, {{"server", server.name}});
  out.gauge("pnfsrdma_mds_log_etcd_member_up", "1 when that member of etcd answers.");
  for (const ClusterMember& member : cluster.members)
    out.value(member.answers ? 1 : 0, {{"member", member.id}});
  out.gauge("pnfsrdma_mds_log_takeover_possible",
            "1 when another server serves by itself if the host that leads is lost.")
      .value(cluster.takeover ? 1 : 0);
  out.counter("pnfsrdma_mds_log_takeovers_total",
              "Takings of the lead from a server that had not given it back, since the log's beginning.")
      .value(number(cluster.takeovers));
  if (!cluster.costs) return;
  out.histogram("pnfsrdma_mds_log_commit_seconds",
                "From the first try to write a value of the log until etcd has it.")
      .value(cluster.costs->commits, {});
  out.counter("pnfsrdma_mds_log_bytes_total", "Of the values that this server has written.")
      .value(number(cluster.costs->bytes));
  out.gauge("pnfsrdma_mds_log_checkpoint_position",
            "Up to here the log is in the metadata store of the server that leads, on its medium.")
      .value(number(cluster.costs->checkpoint));
  out.gauge("pnfsrdma_mds_log_checkpoint_age_seconds", "For so long.")
      .value(number(cluster.costs->checkpoint_seconds));
}

// Both kinds of daemon have one.
void add_loops(Exposition& out, const Numbers& numbers) {
  out.histogram("pnfsrdma_mds_loop_turn_seconds",
                "Turns of the MDS's control loop: while one runs nobody else is served.")
      .value(numbers.turns.times, {});
  out.counter("pnfsrdma_mds_loop_slow_turns_total",
              "Turns of more than 100 ms; each is logged with what it did.")
      .value(number(numbers.turns.slow));
  out.gauge("pnfsrdma_mds_loop_longest_turn_seconds",
            "The longest turn of the last minute or two above 100 ms.")
      .value(number(numbers.turns.longest_ms) / 1e3);
  out.histogram("pnfsrdma_brick_loop_turn_seconds", "Turns of the brick's control loop.");
  for (const Brick& brick : numbers.bricks) {
    if (!brick.id.empty()) out.value(brick.turns.times, {{"brick", brick.id}});
  }
  out.counter("pnfsrdma_brick_loop_slow_turns_total",
              "Turns of the brick's control loop of more than 100 ms.");
  for (const Brick& brick : numbers.bricks) {
    if (!brick.id.empty()) out.value(number(brick.turns.slow), {{"brick", brick.id}});
  }
}

void add_bricks(Exposition& out, const Numbers& numbers) {
  const auto each = [&](const auto& value_of) {
    for (const Brick& brick : numbers.bricks) {
      if (!brick.id.empty()) out.value(value_of(brick), {{"brick", brick.id}});
    }
  };
  out.gauge("pnfsrdma_brick_up", "1 when the MDS can use the brick.");
  each([](const Brick& brick) { return brick.usable() ? 1.0 : 0.0; });
  out.gauge("pnfsrdma_brick_capacity_bytes", "Size of the brick's pool.");
  each([](const Brick& brick) { return number(brick.blocks * brick.block_bytes); });
  out.gauge("pnfsrdma_brick_free_bytes", "Blocks no file uses.");
  each([](const Brick& brick) { return number(brick.free_blocks * brick.block_bytes); });
  out.gauge("pnfsrdma_brick_used_bytes", "Memory given to files, in grains of 4 KiB.");
  each([](const Brick& brick) { return number(brick.used_bytes); });
  out.gauge("pnfsrdma_brick_sessions", "Clients that may connect for data.");
  each([](const Brick& brick) { return brick.sessions; });
  out.gauge("pnfsrdma_brick_connections", "Clients connected for data, by transport.");
  for (const Brick& brick : numbers.bricks) {
    for (const auto& [transport, count] : brick.connections)
      out.value(count, {{"brick", brick.id}, {"transport", to_string(transport)}});
  }
  out.gauge("pnfsrdma_brick_unreached_by", "Clients that report they cannot reach its memory.");
  each([](const Brick& brick) { return number(brick.unreached_by.size()); });
  out.gauge("pnfsrdma_brick_grants", "Handles alive on the brick.");
  each([](const Brick& brick) { return brick.grants; });
  out.gauge("pnfsrdma_brick_durability", "1 for the durability class the brick has.");
  for (const Brick& brick : numbers.bricks) {
    if (!brick.id.empty()) out.value(1, {{"brick", brick.id}, {"class", to_string(brick.durability)}});
  }
  out.counter("pnfsrdma_brick_bytes_total",
              "Data moved by iWARP in user space; the mounts count what an RDMA device moves.");
  for (const Brick& brick : numbers.bricks) {
    if (brick.id.empty()) continue;
    out.value(number(brick.counters.rdma_read_bytes), {{"brick", brick.id}, {"direction", "read"}});
    out.value(number(brick.counters.rdma_write_bytes), {{"brick", brick.id}, {"direction", "write"}});
  }
  out.counter("pnfsrdma_brick_operations_total", "RDMA operations, as far as the transport shows them.");
  for (const Brick& brick : numbers.bricks) {
    if (brick.id.empty()) continue;
    out.value(number(brick.counters.rdma_reads), {{"brick", brick.id}, {"direction", "read"}});
    out.value(number(brick.counters.rdma_writes), {{"brick", brick.id}, {"direction", "write"}});
  }
  out.counter("pnfsrdma_brick_flush_failures_total", "Flushes of the medium that failed.");
  each([](const Brick& brick) { return number(brick.counters.flush_failures); });
  out.gauge("pnfsrdma_brick_damaged_blocks", "Blocks whose table entry cannot be read.");
  each([](const Brick& brick) { return number(brick.counters.damaged_blocks); });
  out.gauge("pnfsrdma_brick_queue_length", "Waiting changes of the block table and operations on memory.");
  each([](const Brick& brick) { return brick.counters.waiting; });
  out.counter("pnfsrdma_brick_flushes_total", "Flushes, by the way they were requested.");
  for (const Brick& brick : numbers.bricks) {
    if (brick.id.empty()) continue;
    out.value(number(brick.counters.rdma_flushes), {{"brick", brick.id}, {"method", "native"}});
    out.value(number(brick.counters.commit_messages), {{"brick", brick.id}, {"method", "commit"}});
    out.value(number(brick.counters.mds_flushes), {{"brick", brick.id}, {"method", "mds"}});
  }
}

}  // namespace

std::string metrics_text(const Numbers& numbers, const ConsoleCounters& console, const std::string& version) {
  Exposition out;
  out.gauge("pnfsrdma_build_info", "Always 1; the version is in its label.").value(1, {{"version", version}});
  add_operations(out, numbers);
  add_state(out, numbers);
  add_metadata_reads(out, numbers.metadata_reads);
  add_loops(out, numbers);
  if (numbers.cluster) add_cluster(out, *numbers.cluster);
  add_bricks(out, numbers);
  out.counter("pnfsrdma_console_requests_total", "Requests to the console.").value(number(console.requests));
  out.counter("pnfsrdma_console_refused_requests_total", "Requests answered with an error.")
      .value(number(console.refused));
  out.counter("pnfsrdma_console_events_total", "Events logged.").value(number(console.events));
  out.gauge("pnfsrdma_console_streams", "Event streams open.").value(number(console.streams));
  out.gauge("pnfsrdma_console_certificate_seconds_left",
            "Until the console's certificate expires; negative: it has.");
  if (console.certificate_seconds_left) out.value(*console.certificate_seconds_left);
  return out.text();
}

}  // namespace pnfsrdma::console
