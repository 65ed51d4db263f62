// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/holdings_view.h"

#include <algorithm>
#include <map>

#include "server/console/inventory_names.h"
#include "server/mds/admin/brick_administration.h"
#include "server/mds/admin/client_names.h"
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
                        .revoked_states = static_cast<uint32_t>(client.revoked.size() + revoked)};
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
                        .grants = {}};
  for (const HeldGrant& grant : held.grants()) {
    shown.grants.push_back({.id = grant.grant,
                            .offset = grant.file.begin,
                            .length = grant.file.length(),
                            .writable = grant.writable,
                            .brick = uuid_text(sources.layouts.bricks().uuid_at(grant.logical)),
                            .logical = grant.logical,
                            .connection = grant.connection});
  }
  return shown;
}

// Connections for data, as the bricks tell them.
void add_brick_sessions(const HoldingsSources& sources, std::map<uint64_t, console::Client>& clients) {
  BrickAdministration& administration = sources.layouts.brick_administration();
  for (const console::Brick& brick : administration.bricks()) {
    const auto number = administration.find(brick.id);
    if (!number) continue;
    for (const brick::SessionEntry& session : administration.sessions(*number)) {
      const auto client = clients.find(session.client);
      if (client == clients.end() || session.connection == 0) continue;
      client->second.bricks.push_back({.brick = brick.id,
                                       .peer = session.peer,
                                       .transport = console::data_transport_of(session.transport),
                                       .connection = session.connection,
                                       .grants = session.grants});
    }
  }
}

// Of the brick its first grant is on.
console::DataTransport transport_of(const console::Layout& layout, const console::Client& client) {
  if (layout.grants.empty()) return console::DataTransport::kNone;
  const auto found =
      std::ranges::find(client.bricks, layout.grants.front().brick, &console::ClientBrick::brick);
  return found == client.bricks.end() ? console::DataTransport::kNone : found->transport;
}

}  // namespace

console::Holdings view_holdings(const HoldingsSources& sources) {
  console::Holdings all;
  std::map<uint64_t, console::Client> clients;
  for (const auto& [id, client] : sources.clients.all()) clients.emplace(id, view_client(sources, *client));
  add_brick_sessions(sources, clients);
  const LayoutTable& table = sources.layouts.table();
  for (const uint64_t inode : table.files()) {
    for (const uint64_t id : table.clients_of_file(inode)) {
      const HeldLayout* held = table.find(inode, id);
      if (held == nullptr) continue;  // dying already
      console::Layout layout = view_layout(sources, *held);
      if (const auto found = clients.find(id); found != clients.end()) {
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
      all.layouts.push_back(std::move(layout));
    }
  }
  for (auto& [id, client] : clients) all.clients.push_back(std::move(client));
  std::ranges::sort(all.layouts, [](const console::Layout& one, const console::Layout& other) {
    return std::pair(one.client, one.inode) < std::pair(other.client, other.inode);
  });
  return all;
}

}  // namespace pnfsrdma::mds
