// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/holdings_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include "server/console/inventory_names.h"
#include "server/mds/admin/brick_administration.h"
#include "server/mds/admin/client_names.h"
#include "server/mds/admin/id_walk.h"
#include "server/mds/admin/layout_walk.h"
#include "server/mds/admin/numbers_view.h"
#include "server/mds/bricks/brick_set.h"
#include "server/mds/grants/layout_table.h"
#include "server/mds/layout/layouts.h"
#include "server/mds/state/session.h"

namespace pnfsrdma::mds {

namespace {

double seconds(SteadyTime::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

console::ClientSession view_session(Session& session) {
  using enum console::CallbackState;
  const auto callbacks = !session.back().wanted ? kNone : session.back_connection() ? kUp : kDown;
  return {.id = to_hex(session.id()),
          .slots = session.fore().max_requests,
          .peers = session.peers(),
          .transport = console::session_transport_of(session.transport()),
          .callbacks = callbacks};
}

console::Client view_client(const HoldingsSources& sources, const Client& client) {
  const size_t revoked = sources.delegations.revoked_of_client(client.id);
  const size_t delegations = sources.delegations.of_client(client.id).size() - revoked;
  console::Client shown{.id = client.id,
                        .name = client_name(client),
                        .host = host_of_client(client),
                        .mount_point = printable(as_bytes(client.mount_point)),
                        .owner = printable(client.owner),
                        .uid = client.principal.uid,
                        .confirmed = client.confirmed,
                        .lease_seconds_left = std::max(0.0, seconds(client.lease_end - sources.clock.now())),
                        .opens = static_cast<uint32_t>(sources.opens.opens_of_client(client.id).size()),
                        .locks = static_cast<uint32_t>(sources.locks.locks_of_client(client.id).size()),
                        .delegations = static_cast<uint32_t>(delegations),
                        .revoked_states = static_cast<uint32_t>(revoked),
                        .reported = view_reported(client.reported)};
  for (Session* session : client.sessions) shown.sessions.push_back(view_session(*session));
  return shown;
}

console::Layout view_layout(const HoldingsSources& sources, const HeldLayout& held) {
  const auto age = sources.clock.now() - held.granted();
  WallTime granted = sources.clock.wall_now();
  granted.seconds -= std::chrono::duration_cast<std::chrono::seconds>(age).count();
  const ByteRange whole{0, kEndOfFile};
  const bool recalling = sources.layouts.layouts().recalls().progress(held.client(), held.inode(), whole) !=
                         Recalls::Progress::kNone;
  console::Layout shown{.client = held.client(),
                        .client_name = {},
                        .inode = held.inode(),
                        .path = sources.names.last_path(held.inode()),
                        .export_id = held.export_id(),
                        .granted = granted,
                        .age_seconds = seconds(age),
                        .state = recalling ? console::LayoutState::kRecalling : console::LayoutState::kHeld,
                        .grants = {},
                        .reported = view_reported(held.reported())};
  shown.grants.reserve(held.grants().size());
  // Without the brick's uuid: a file may have very many.
  for (const HeldGrant& grant : held.grants()) {
    shown.grants.push_back({.id = grant.grant,
                            .offset = grant.file.begin,
                            .length = grant.file.length(),
                            .writable = grant.writable,
                            .brick = {},
                            .logical = grant.logical,
                            .connection = grant.connection});
  }
  return shown;
}

// What one brick tells of its connections for data.
struct BrickSessions {
  std::string brick;
  std::shared_ptr<const std::vector<brick::SessionEntry>> sessions;
};

void add_sessions(const BrickSessions& told, std::map<uint64_t, console::Client>& clients) {
  for (const brick::SessionEntry& session : *told.sessions) {
    const auto client = clients.find(session.client);
    if (client == clients.end() || session.connection == 0) continue;
    client->second.bricks.push_back({.brick = told.brick,
                                     .peer = session.peer,
                                     .transport = console::data_transport_of(session.transport),
                                     .connection = session.connection,
                                     .grants = session.grants});
  }
}

// Of the brick its first grant is on.
console::DataTransport transport_of(const console::Layout& layout, const console::Client& client) {
  if (layout.grants.empty()) return console::DataTransport::kNone;
  const auto found =
      std::ranges::find(client.bricks, layout.grants.front().brick, &console::ClientBrick::brick);
  return found == client.bricks.end() ? console::DataTransport::kNone : found->transport;
}

// One view, while it is being made.
class HoldingsView : public std::enable_shared_from_this<HoldingsView> {
 public:
  using Done = console::Administration::Done<console::Administration::Later<console::Holdings>>;

  HoldingsView(const HoldingsSources& sources, std::weak_ptr<const void> alive, Done done)
      : sources_(sources), alive_(std::move(alive)), done_(std::move(done)) {}

  void begin() {
    std::vector<uint64_t> ids;
    for (const auto& [id, client] : sources_.clients.all()) ids.push_back(id);
    walk_ids(
        sources_.loop, std::move(ids), alive_,
        [self = shared_from_this()](uint64_t id) { self->add_client(id); },
        [self = shared_from_this()] { self->add_layouts(); });
  }

 private:
  void add_client(uint64_t id) {
    if (const auto client = sources_.clients.find(id)) clients_.emplace(id, view_client(sources_, *client));
  }
  void add_layouts() {
    const EventLoop::Step step(sources_.loop, "console-holdings");
    note_brick_sessions();
    walk_layouts(
        sources_.loop, sources_.layouts.table(), 0, alive_,
        [self = shared_from_this()](const HeldLayout& held) {
          self->layouts_.push_back(view_layout(self->sources_, held));
          self->note_bricks(held);
        },
        [self = shared_from_this()] {
          const Done done = std::move(self->done_);
          done([self] { return self->sum_up(); });
        },
        kLayoutsViewedPerTurn);
  }

  void note_brick_sessions() {
    BrickAdministration& administration = sources_.layouts.brick_administration();
    for (const console::Brick& brick : administration.bricks()) {
      const auto number = administration.find(brick.id);
      if (!number) continue;
      if (auto sessions = administration.sessions(*number))
        sessions_.push_back({brick.id, std::move(sessions)});
    }
  }
  // What the zones that its grants are in are called.
  void note_bricks(const HeldLayout& held) {
    for (const HeldGrant& grant : held.grants()) {
      const uint32_t zone = zone_of(grant.logical);
      if (!bricks_.empty() && zone == last_zone_) continue;
      last_zone_ = zone;
      if (!bricks_.contains(zone))
        bricks_.emplace(zone, uuid_text(sources_.layouts.bricks().uuid_at(grant.logical)));
    }
  }

  // By whoever asked: nothing here is the loop's.
  console::Holdings sum_up() {
    for (const BrickSessions& told : sessions_) add_sessions(told, clients_);
    for (console::Layout& layout : layouts_) {
      for (console::Grant& grant : layout.grants) grant.brick = bricks_.at(zone_of(grant.logical));
      const auto found = clients_.find(layout.client);
      if (found == clients_.end()) continue;
      console::Client& client = found->second;
      layout.client_name = client.name;
      layout.transport = transport_of(layout, client);
      ++client.layouts;
      client.grants += static_cast<uint32_t>(layout.grants.size());
      // Files share no memory: what is reached of each adds up.
      const console::Reach reach = console::reach_of(layout.grants);
      client.bytes += reach.bytes;
      client.writable_bytes += reach.writable_bytes;
    }
    console::Holdings all{.clients = {}, .layouts = std::move(layouts_)};
    for (auto& [id, client] : clients_) all.clients.push_back(std::move(client));
    std::ranges::sort(all.layouts, {},
                      [](const console::Layout& layout) { return std::pair(layout.client, layout.inode); });
    return all;
  }

  const HoldingsSources sources_;
  const std::weak_ptr<const void> alive_;
  Done done_;
  std::map<uint64_t, console::Client> clients_;
  std::vector<console::Layout> layouts_;
  std::vector<BrickSessions> sessions_;
  std::map<uint32_t, std::string> bricks_;  // uuids, by zone
  uint32_t last_zone_ = 0;
};

}  // namespace

void view_holdings(const HoldingsSources& sources, std::weak_ptr<const void> alive, HoldingsView::Done done) {
  std::make_shared<HoldingsView>(sources, std::move(alive), std::move(done))->begin();
}

}  // namespace pnfsrdma::mds
