// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/activity_view.h"

#include <set>
#include <string>
#include <utility>

#include "server/console/inventory_names.h"
#include "server/mds/admin/client_names.h"
#include "server/mds/admin/id_walk.h"

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
  if (told.sessions) {
    for (const brick::SessionEntry& session : *told.sessions) {
      if (console::data_transport_of(session.transport) == console::DataTransport::kVerbs)
        uncounted.insert(session.client);
    }
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

// One view, while it is being made.
class ActivityView : public std::enable_shared_from_this<ActivityView> {
 public:
  using Done = console::Administration::Done<console::Administration::Later<console::Activity>>;

  ActivityView(const ActivitySources& sources, std::weak_ptr<const void> alive, Done done)
      : sources_(sources), alive_(std::move(alive)), done_(std::move(done)) {}

  void begin() {
    std::vector<uint64_t> ids;
    for (const auto& [id, client] : sources_.clients.all()) ids.push_back(id);
    walk_ids(
        sources_.loop, std::move(ids), alive_,
        [self = shared_from_this()](uint64_t id) { self->add_client(id); },
        [self = shared_from_this()] { self->end(); });
  }

 private:
  void add_client(uint64_t id) {
    if (const auto client = sources_.clients.find(id))
      shown_.clients.push_back(
          {.id = id, .name = client_name(*client), .served = view_served(client->activity)});
  }
  void end() {
    for (const Export* item : sources_.exports.all()) {
      const auto found = sources_.counters.by_export.find(item->id);
      const Activity activity = found == sources_.counters.by_export.end() ? Activity{} : found->second;
      shown_.exports.push_back({.id = item->id, .path = item->path, .served = view_served(activity)});
    }
    for (const auto& [id, told] : sources_.bricks.observations()) {
      if (told.traffic) told_.emplace_back(id, told);
    }
    const Done done = std::move(done_);
    done([self = shared_from_this()] { return self->sum_up(); });
  }
  // By whoever asked: nothing here is the loop's.
  console::Activity sum_up() {
    for (const auto& [id, told] : told_) shown_.bricks.push_back(view_brick(id, told));
    return std::move(shown_);
  }

  const ActivitySources sources_;
  const std::weak_ptr<const void> alive_;
  Done done_;
  console::Activity shown_;
  std::vector<std::pair<std::string, BrickObservation>> told_;
};

}  // namespace

void view_activity(const ActivitySources& sources, std::weak_ptr<const void> alive, ActivityView::Done done) {
  std::make_shared<ActivityView>(sources, std::move(alive), std::move(done))->begin();
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
