// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/activity_view.h"

#include <set>

#include "server/console/inventory_names.h"
#include "server/mds/admin/client_names.h"

namespace pnfsrdma::mds {

namespace {

console::ServedCounters view_served(const Activity& activity) {
  return {.operations = activity.operations,
          .read_bytes = activity.read_bytes,
          .write_bytes = activity.write_bytes};
}

// Not of clients that have an RDMA device: what that moves nobody counts, and zeros would be a lie.
console::BrickActivity view_brick(const std::string& id, const BrickObservation& told) {
  std::set<uint64_t> uncounted;
  for (const brick::SessionEntry& session : told.sessions) {
    if (console::data_transport_of(session.transport) == console::DataTransport::kVerbs)
      uncounted.insert(session.client);
  }
  console::BrickActivity shown{.brick = id, .clients = {}};
  for (const brick::SessionTraffic& traffic : *told.traffic) {
    if (uncounted.contains(traffic.client)) continue;
    shown.clients.push_back({traffic.client,
                             {.read_bytes = traffic.read_bytes,
                              .write_bytes = traffic.write_bytes,
                              .reads = traffic.reads,
                              .writes = traffic.writes}});
  }
  return shown;
}

}  // namespace

console::Activity view_activity(const ActivitySources& sources) {
  console::Activity shown;
  for (const auto& [id, client] : sources.clients.all())
    shown.clients.push_back(
        {.id = id, .name = client_name(*client), .served = view_served(client->activity)});
  for (const Export* item : sources.exports.all()) {
    const auto found = sources.counters.by_export.find(item->id);
    const Activity activity = found == sources.counters.by_export.end() ? Activity{} : found->second;
    shown.exports.push_back({.id = item->id, .path = item->path, .served = view_served(activity)});
  }
  for (const auto& [id, told] : sources.bricks.observations()) {
    if (told.traffic) shown.bricks.push_back(view_brick(id, told));
  }
  return shown;
}

std::vector<console::BusyFile> view_busy_files(const BusyFiles& files, Namespace& names, size_t count) {
  std::vector<console::BusyFile> shown;
  for (const BusyFiles::Rate& rate : files.busiest(count))
    shown.push_back({.inode = rate.inode,
                     .path = names.last_path(rate.inode),
                     .operations = rate.operations,
                     .read_bytes = rate.read_bytes,
                     .write_bytes = rate.write_bytes});
  return shown;
}

}  // namespace pnfsrdma::mds
