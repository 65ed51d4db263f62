// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/mount_status.h"
#include "fuse-client/ring/ring_server.h"
#include "shared/version/version.h"

#include <nlohmann/json.hpp>

namespace pnfsrdma::fuse_client {
namespace {

using nlohmann::json;

// What differs between devices is shown of all: "process,volatile".
template <typename Member>
std::string of_all(const std::vector<initiator::DeviceView>& devices, Member member, const char* none) {
  std::string text;
  for (const initiator::DeviceView& device : devices) {
    const std::string& value = device.*member;
    if (value.empty() || text.find(value) != std::string::npos) continue;
    if (!text.empty()) text += ',';
    text += value;
  }
  return text.empty() ? none : text;
}

json to_json(const initiator::DeviceView& device) {
  return {
      {"device", device.device},   {"connected", device.connected},   {"transport", device.transport},
      {"address", device.address}, {"durability", device.durability}, {"flush_method", device.flush_method},
      {"choice", device.choice},   {"in_flight", device.in_flight},   {"offered", device.offered}};
}

const char* persistence_of(const MountOptions& options) {
  switch (options.persistence) {
    case initiator::Persistence::kHard:
      return "hard";
    case initiator::Persistence::kSoft:
      return "soft";
    case initiator::Persistence::kSoftError:
      return "softerr";
  }
  return "?";
}

json to_json(const MountOptions& options) {
  return {{"persistence", persistence_of(options)},
          {"timeo", options.timeout_deciseconds},
          {"retrans", options.retransmissions},
          {"read_only", options.read_only},
          {"writeback", options.writeback},
          {"direct_io", options.direct_only},
          {"threads", options.threads},
          {"require_durability", options.require_persistent}};
}

std::string calls_by(const MountOptions& options, const std::vector<std::string>& transports) {
  if (!options.calls_by_rdma) return "tcp";
  return "rpc-over-rdma/" + (transports.empty() ? "?" : transports.front());
}

}  // namespace

std::string MountStatus::transport() const {
  return of_all(parts_.data_path.devices(), &initiator::DeviceView::transport, "none");
}

std::string MountStatus::durability() const {
  return of_all(parts_.data_path.devices(), &initiator::DeviceView::durability, "unknown");
}

std::string MountStatus::statistics_json() const {
  json counters;
  for (const auto& [name, value] : parts_.data_path.statistics().snapshot())
    counters[std::string(name)] = value;
  const initiator::SessionStatistics session = parts_.session.statistics();
  const Delegations::Counts delegations = parts_.delegations.counts();
  counters["delegations_granted"] = delegations.granted;
  counters["delegations_granted_to_write"] = delegations.granted_to_write;
  counters["delegations_recalled"] = delegations.recalled;
  counters["opens_under_delegation"] = delegations.opens;
  const RingServer::Counts rings = parts_.rings.counts();
  counters["ring_programs"] = rings.programs;
  counters["ring_memory_bytes"] = rings.memory_bytes;
  counters["ring_operations"] = rings.operations;
  counters["ring_handed_back"] = rings.handed_back;
  counters["mds_calls"] = session.compounds;
  counters["mds_renewals"] = session.renewals;
  counters["mds_reconnects"] = session.reconnects;
  counters["mds_new_sessions"] = session.new_sessions;
  counters["mds_new_clientids"] = session.new_clientids;
  counters["mds_delays"] = session.delays;
  counters["mds_callbacks"] = session.callbacks;
  counters["mds_sends"] = session.send_calls;
  counters["mds_receives"] = session.receive_calls;
  json operations = json::object();
  for (size_t number = 0; number < session.operations.size(); ++number) {
    if (session.operations[number] == 0) continue;
    operations[nfs4::to_string(static_cast<nfs4::Operation>(number))] = session.operations[number];
  }
  counters["mds_operations"] = std::move(operations);
  return counters.dump();
}

std::string MountStatus::status_json() const {
  const initiator::SessionStatistics session = parts_.session.statistics();
  const initiator::LayoutsView layouts = parts_.data_path.layouts();
  const auto& statistics = parts_.data_path.statistics();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(parts_.clock.now() - mounted_at_);
  const auto latency = [](const LatencyHistogram::Snapshot& taken) {
    return json{{"count", taken.count()}, {"nanoseconds", taken.sum.count()}};
  };
  json devices = json::array();
  for (const initiator::DeviceView& device : parts_.data_path.devices()) devices.push_back(to_json(device));
  const uint32_t running = parts_.workers.running;
  const uint32_t idle = parts_.workers.idle;
  const InodeTable::Kept kept = parts_.inodes.kept();
  return json{
      {"version", version()},
      {"mountpoint", parts_.options.mountpoint},
      {"path", parts_.options.path},
      {"mounted_seconds", seconds.count()},
      {"options", to_json(parts_.options)},
      {"server",
       {{"address", parts_.session.server()},
        {"host", parts_.session.host_in_use()},
        {"implementation", parts_.session.implementation()},
        {"minor_version", parts_.session.minor_version()},
        {"calls_by", calls_by(parts_.options, parts_.transports)},
        {"lease_seconds", parts_.session.lease().count() / 1000},
        {"slots", session.slots},
        {"slots_in_use", session.slots_in_use}}},
      {"transports", parts_.transports},
      {"durability", parts_.durability},
      {"devices", std::move(devices)},
      {"files",
       {{"known_to_kernel", parts_.inodes.size()},
        {"kept", kept.inodes},
        {"kept_bytes", kept.bytes},
        {"with_data_state", layouts.known},
        {"closes_owed", parts_.closes.owed()}}},
      {"delegations", {{"held", parts_.delegations.counts().held}}},
      {"layouts",
       {{"files", layouts.files},
        {"segments", layouts.segments},
        {"readable_bytes", layouts.readable_bytes},
        {"writable_bytes", layouts.writable_bytes}}},
      {"workers",
       {{"running", running},
        {"busy", running > idle ? running - idle : 0},
        {"limit", parts_.options.threads},
        {"parked", parts_.workers.parked.load()},
        {"parked_bytes", parts_.workers.parked_bytes.load()}}},
      {"latency",
       {{"read", latency(statistics.read_latency.snapshot())},
        {"write", latency(statistics.write_latency.snapshot())},
        {"sync", latency(statistics.sync_latency.snapshot())},
        {"mds_call", latency(session.latency)}}},
  }
      .dump();
}

}  // namespace pnfsrdma::fuse_client
