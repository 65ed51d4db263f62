// SPDX-License-Identifier: Apache-2.0
#include <prometheus/text_serializer.h>

#include <initializer_list>

#include "fuse-client/mount_status.h"
#include "shared/version/version.h"

// The mount in Prometheus' words: every name begins with pnfsrdma_client_. One family a function; the
// counters are read when somebody asks.
namespace pnfsrdma::fuse_client {
namespace {

using initiator::Counter;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Label = ClientMetric::Label;
struct Sample {
  std::vector<Label> labels;
  double value = 0;
};

MetricFamily family(std::string name, std::string help, MetricType type, const std::vector<Sample>& samples) {
  MetricFamily made{"pnfsrdma_client_" + std::move(name), std::move(help), type, {}};
  for (const Sample& sample : samples) {
    ClientMetric metric;
    metric.label = sample.labels;
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = sample.value;
    made.metric.push_back(std::move(metric));
  }
  return made;
}

MetricFamily counter(std::string name, std::string help, const std::vector<Sample>& samples) {
  return family(std::move(name), std::move(help), MetricType::Counter, samples);
}

MetricFamily counter(std::string name, std::string help, double value) {
  return counter(std::move(name), std::move(help), {{{}, value}});
}

MetricFamily gauge(std::string name, std::string help, const std::vector<Sample>& samples) {
  return family(std::move(name), std::move(help), MetricType::Gauge, samples);
}

double number(const Counter& from) {
  return static_cast<double>(from.value());
}

ClientMetric histogram_of(const LatencyHistogram::Snapshot& taken, std::vector<Label> labels) {
  using Seconds = std::chrono::duration<double>;
  constexpr auto kBorders = LatencyHistogram::borders();
  ClientMetric metric;
  metric.label = std::move(labels);
  uint64_t cumulative = 0;
  for (size_t i = 0; i < kBorders.size(); ++i) {
    cumulative += taken.counts[i];
    metric.histogram.bucket.push_back({cumulative, Seconds(kBorders[i]).count()});
  }
  metric.histogram.sample_count = cumulative + taken.counts.back();
  metric.histogram.sample_sum = Seconds(taken.sum).count();
  return metric;
}

std::vector<Sample> by_direction_and_path(const Counter& rdma_read, const Counter& rdma_write,
                                          const Counter& mds_read, const Counter& mds_write) {
  return {{{{"direction", "read"}, {"path", "rdma"}}, number(rdma_read)},
          {{{"direction", "write"}, {"path", "rdma"}}, number(rdma_write)},
          {{{"direction", "read"}, {"path", "mds"}}, number(mds_read)},
          {{{"direction", "write"}, {"path", "mds"}}, number(mds_write)}};
}

void add_data(std::vector<MetricFamily>& all, const initiator::Statistics& from) {
  all.push_back(counter("data_bytes_total",
                        "Bytes moved, by direction and path (rdma: straight to the brick; mds: through it).",
                        by_direction_and_path(from.rdma_read_bytes, from.rdma_write_bytes,
                                              from.mds_read_bytes, from.mds_write_bytes)));
  all.push_back(
      counter("data_operations_total", "READs and WRITEs, by direction and path.",
              by_direction_and_path(from.rdma_reads, from.rdma_writes, from.mds_reads, from.mds_writes)));
  all.push_back(counter("rdma_round_trips_total", "Waits for bricks; for several at once it is one.",
                        number(from.rdma_round_trips)));
  all.push_back(
      counter("hole_bytes_total", "Bytes read as zeros without touching a server.", number(from.hole_bytes)));
  all.push_back(counter("flushes_total", "Flushes, by method.",
                        {{{{"method", "native"}}, number(from.flushes_native)},
                         {{{"method", "commit_message"}}, number(from.flushes_commit_message)},
                         {{{"method", "layoutcommit"}}, number(from.flushes_layoutcommit)},
                         {{{"method", "mds_commit"}}, number(from.flushes_mds_commit)}}));
  all.push_back(counter(
      "syncs_total", "fsync and fdatasync calls of applications.",
      {{{{"call", "fsync"}}, number(from.fsyncs)}, {{{"call", "fdatasync"}}, number(from.fdatasyncs)}}));
  all.push_back(counter("lost_writes_total",
                        "Verifier changes and revocations that cost unflushed writes (EIO at the next sync).",
                        number(from.lost_writes)));
  all.push_back(counter("restored_bytes_total", "Growth rewritten after its layout was lost.",
                        number(from.restored_bytes)));
  all.push_back(counter("resent_bytes_total", "Rewrites through the server, which had lost uncommitted data.",
                        number(from.resent_bytes)));
}

void add_layouts(std::vector<MetricFamily>& all, const initiator::Statistics& from,
                 const initiator::LayoutsView& held) {
  all.push_back(gauge("data_files",
                      "Files with data state: open, or closed with a layout or something to flush.",
                      {{{}, double(held.known)}}));
  all.push_back(gauge("layout_files", "Files with a layout.", {{{}, double(held.files)}}));
  all.push_back(gauge("layout_segments", "Layout segments held.", {{{}, double(held.segments)}}));
  all.push_back(gauge("granted_bytes", "Bytes granted to this mount, by right.",
                      {{{{"right", "read"}}, double(held.readable_bytes)},
                       {{{"right", "write"}}, double(held.writable_bytes)}}));
  all.push_back(counter("layoutgets_total", "LAYOUTGETs, by outcome.",
                        {{{{"outcome", "granted"}}, number(from.layoutgets)},
                         {{{"outcome", "refused"}}, number(from.layoutgets_refused)}}));
  all.push_back(counter("layoutcommits_total", "LAYOUTCOMMITs: waited for, or sent beside a flush.",
                        {{{{"mode", "waited"}}, number(from.layoutcommits)},
                         {{{"mode", "beside"}}, number(from.layoutcommits_beside)}}));
  all.push_back(counter("layoutreturns_total", "LAYOUTRETURNs sent.", number(from.layoutreturns)));
  all.push_back(
      counter("recalls_total", "CB_LAYOUTRECALL and CB_RECALL_ANY received.", number(from.recalls)));
  all.push_back(counter("layouts_dropped_total", "Times that all layouts of the mount or of a device died.",
                        number(from.layouts_dropped)));
  all.push_back(counter("fallbacks_total", "I/Os through the MDS although a layout was wanted.",
                        number(from.fallbacks)));
}

void add_devices(std::vector<MetricFamily>& all, const initiator::Statistics& from,
                 const std::vector<initiator::DeviceView>& devices) {
  std::vector<Sample> connected;
  std::vector<Sample> in_flight;
  for (const initiator::DeviceView& device : devices) {
    connected.push_back({{{"device", device.device},
                          {"transport", device.transport},
                          {"durability", device.durability},
                          {"flush_method", device.flush_method}},
                         device.connected ? 1.0 : 0.0});
    in_flight.push_back({{{"device", device.device}}, double(device.in_flight)});
  }
  all.push_back(gauge("device_connected", "1 while the device's queue pair lives; how it is used in labels.",
                      connected));
  all.push_back(
      gauge("device_queue_depth", "Work requests posted to the device and not complete.", in_flight));
  all.push_back(counter("device_connects_total", "Connections made to devices.", number(from.connects)));
  all.push_back(
      counter("device_reconnects_total", "Of these, to a device known before.", number(from.reconnects)));
  all.push_back(counter("device_connect_failures_total", "Attempts that failed on every path.",
                        number(from.connect_failures)));
  all.push_back(
      counter("replays_total", "I/Os posted again after their connection died.", number(from.replays)));
}

void add_session(std::vector<MetricFamily>& all, const initiator::SessionStatistics& from) {
  all.push_back(counter("mds_calls_total", "COMPOUNDs sent, renewals of the lease not counted.",
                        double(from.compounds)));
  std::vector<Sample> operations;
  for (size_t i = 0; i < from.operations.size(); ++i) {
    if (from.operations[i] == 0) continue;
    const char* const name = nfs4::to_string(static_cast<nfs4::Operation>(i));
    operations.push_back({{{"operation", name}}, double(from.operations[i])});
  }
  all.push_back(counter("mds_operations_total", "Operations sent to the MDS.", operations));
  all.push_back(
      counter("lease_renewals_total", "COMPOUNDs that only renew the lease.", double(from.renewals)));
  all.push_back(counter("mds_reconnects_total", "Reconnections to the MDS.", double(from.reconnects)));
  all.push_back(
      counter("mds_new_sessions_total", "Sessions that replaced a lost one.", double(from.new_sessions)));
  all.push_back(counter("mds_new_clientids_total", "New client IDs: the server had forgotten the old one.",
                        double(from.new_clientids)));
  all.push_back(
      counter("mds_delays_total", "Repetitions after DELAY, GRACE and the like.", double(from.delays)));
  all.push_back(counter("mds_callbacks_total", "Callbacks received.", double(from.callbacks)));
  all.push_back(
      gauge("mds_slots", "Session slots, all and in use.",
            {{{{"state", "all"}}, double(from.slots)}, {{{"state", "in_use"}}, double(from.slots_in_use)}}));
}

void add_delegations(std::vector<MetricFamily>& all, const Delegations::Counts& from) {
  all.push_back(
      gauge("delegations", "Files that are opened without asking the MDS.", {{{}, double(from.held)}}));
  all.push_back(counter("delegations_granted_total", "Delegations that the MDS gave.", double(from.granted)));
  all.push_back(counter("delegations_recalled_total",
                        "Those that it asked back, because somebody changes the file.",
                        double(from.recalled)));
  all.push_back(
      counter("opens_under_delegation_total", "Opens without a call to the MDS.", double(from.opens)));
}

void add_latencies(std::vector<MetricFamily>& all, const initiator::Statistics& data,
                   const initiator::SessionStatistics& session) {
  MetricFamily latencies{"pnfsrdma_client_latency_seconds",
                         "How long reads, writes and syncs of applications and calls to the MDS took.",
                         MetricType::Histogram,
                         {}};
  const auto add = [&](const char* operation, const LatencyHistogram::Snapshot& taken) {
    latencies.metric.push_back(histogram_of(taken, {{"operation", operation}}));
  };
  add("read", data.read_latency.snapshot());
  add("write", data.write_latency.snapshot());
  add("sync", data.sync_latency.snapshot());
  add("mds_call", session.latency);
  all.push_back(std::move(latencies));
}

}  // namespace

std::string MountStatus::metrics_text() const {
  const initiator::Statistics& data = parts_.data_path.statistics();
  const initiator::SessionStatistics session = parts_.session.statistics();
  std::vector<MetricFamily> all;
  all.push_back(gauge("info", "What is mounted where; always 1.",
                      {{{{"version", version()},
                         {"server", parts_.session.server()},
                         {"export", parts_.options.path},
                         {"mountpoint", parts_.options.mountpoint},
                         {"durability", parts_.durability}},
                        1.0}}));
  const std::chrono::duration<double> mounted = parts_.clock.now() - mounted_at_;
  all.push_back(gauge("mounted_seconds", "Since the mount began.", {{{}, mounted.count()}}));
  add_data(all, data);
  add_layouts(all, data, parts_.data_path.layouts());
  add_devices(all, data, parts_.data_path.devices());
  add_session(all, session);
  add_delegations(all, parts_.delegations.counts());
  const uint32_t running = parts_.workers.running;
  const uint32_t idle = parts_.workers.idle;
  all.push_back(gauge("inodes", "Files and directories the kernel knows; about 1.2 kB of memory each.",
                      {{{}, double(parts_.inodes.size())}}));
  const InodeTable::Kept kept = parts_.inodes.kept();
  all.push_back(gauge("inodes_kept",
                      "Files and directories of which the mount knows and the kernel does not.",
                      {{{}, double(kept.inodes)}}));
  all.push_back(gauge("kept_inode_bytes", "Their memory.", {{{}, double(kept.bytes)}}));
  all.push_back(gauge("requests_in_progress", "FUSE requests that are being served.",
                      {{{}, double(running > idle ? running - idle : 0)}}));
  all.push_back(gauge("requests_parked", "FUSE requests that wait for a silent brick and hold no thread.",
                      {{{}, double(parts_.workers.parked)}}));
  all.push_back(
      gauge("parked_bytes", "Memory of the parked requests.", {{{}, double(parts_.workers.parked_bytes)}}));
  add_latencies(all, data, session);
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace pnfsrdma::fuse_client
