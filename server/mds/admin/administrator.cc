// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/administrator.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "server/mds/admin/activity_view.h"
#include "server/mds/admin/brick_administration.h"
#include "server/mds/admin/client_names.h"
#include "server/mds/admin/file_view.h"
#include "server/mds/bricks/brick_set.h"
#include "server/mds/grants/layout_table.h"
#include "server/mds/layout/layouts.h"
#include "server/mds/meta/read_then.h"
#include "server/mds/ops/network.h"
#include "server/mds/state/session.h"
#include "shared/base/join.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

Administrator::Administrator(const Parts& parts)
    : parts_(parts),
      started_(parts.clock.now()),
      aged_(started_),
      exports_(
          parts.store, parts.exports, parts.handles, [this](uint16_t id) { recall_layouts_of(id); },
          [this] { return mounted_clients(); }),
      settings_(parts.store, parts.config, parts.limits),
      jobs_(parts.clock) {}

console::Numbers Administrator::numbers() {
  const EventLoop::Step step(parts_.loop, "console-numbers");
  console::Numbers numbers = view_numbers({.clock = parts_.clock,
                                           .counters = parts_.counters,
                                           .store = parts_.store,
                                           .clients = parts_.clients,
                                           .sessions = parts_.sessions,
                                           .opens = parts_.opens,
                                           .locks = parts_.locks,
                                           .grace = parts_.grace,
                                           .layouts = parts_.layouts,
                                           .compounds = &parts_.compounds,
                                           .started = started_,
                                           .start_count = parts_.start_count});
  numbers.turns = view_turns(parts_.loop.turns(), parts_.loop.now());
  numbers.checks.push_back(check_of_turns("This server", numbers.turns));
  add_memory(parts_.memory, numbers);
  add_old_handles(parts_.handles.old_handles(), numbers);
  add_port_refusals(parts_.counters, parts_.exports, parts_.clock.now(), numbers);
  add_name_service(parts_.user_groups, numbers);
  add_bricks(numbers);
  return numbers;
}

console::Holdings Administrator::holdings() {
  const EventLoop::Step step(parts_.loop, "console-holdings");
  return view_holdings({.clock = parts_.clock,
                        .clients = parts_.clients,
                        .opens = parts_.opens,
                        .locks = parts_.locks,
                        .delegations = parts_.delegations,
                        .layouts = parts_.layouts,
                        .names = parts_.names});
}

console::Activity Administrator::activity() {
  const SteadyTime now = parts_.clock.now();
  parts_.counters.busy_files.age(std::chrono::duration<double>(now - std::exchange(aged_, now)).count());
  return view_activity({.counters = parts_.counters,
                        .clients = parts_.clients,
                        .exports = parts_.exports,
                        .bricks = parts_.layouts.brick_administration()});
}

std::vector<console::BusyFile> Administrator::busy_files(size_t count) {
  return view_busy_files(parts_.counters.busy_files, parts_.names, count);
}

void Administrator::file(const std::string& path, Done<console::File> done) {
  read_then(
      parts_.store, lifetime_.token(), [this, path] { return view_file(parts_.names, parts_.opens, path); },
      [this, done = std::move(done)](Result<console::File> file) {
        if (!file) return done(std::move(file));
        for (console::FileExtent& extent : file->extents)
          extent.brick = uuid_text(parts_.layouts.bricks().uuid_at(extent.logical));
        done(std::move(file));
      });
}

// --- layouts and clients ---

void Administrator::revoke(uint64_t client, uint64_t inode, Done<Revoked> done) {
  Holdings held;
  const LayoutTable& table = parts_.layouts.table();
  const std::vector<uint64_t> files =
      inode != 0 ? std::vector<uint64_t>{inode} : table.files_of_client(client);
  for (const uint64_t file : files) {
    for (const uint64_t holder : table.clients_of_file(file)) {
      if (client == 0 || client == holder) held.emplace_back(holder, file);
    }
  }
  revoke(held, "administrator", std::move(done));
}

void Administrator::revoke(const Holdings& held, std::string_view why, Done<Revoked> done) {
  const auto revoked = std::make_shared<Revoked>();
  const Join join([revoked, done = std::move(done)] { done(*revoked); });
  for (const auto& [holder, file] : held) {
    log_info("mds", "layout-revoked client={:#x} inode={} why={}", holder, file, why);
    parts_.layouts.layouts().revoke_layout(holder, file,
                                           [revoked, end = join.part()](std::optional<size_t> handles) {
                                             if (handles) {
                                               ++revoked->layouts;
                                               revoked->grants += *handles;
                                             }
                                             end();
                                           });
  }
  join.end();
}

void Administrator::expel(uint64_t client, Done<> done) {
  const auto found = parts_.clients.find(client);
  if (!found) return done(fail(ENOENT, fmt::format("there is no client {:016x}", client)));
  log_warning("mds", "client-expelled client={:#x} name={} why=administrator", client, client_name(*found));
  parts_.leases.retire(found, [done = std::move(done)] { done({}); });
}

// What the configuration file says of exports and bricks is where a server begins; the store has what is in
// force since.
std::vector<console::Setting> Administrator::settings() {
  std::vector<console::Setting> all = settings_.all();
  for (console::Setting& setting : all) {
    if (setting.name == "exports" && exports_.stored()) {
      setting.value = exports_.text();
      setting.source = "store";
    }
    if (setting.name == "bricks") {
      const std::string in_force = parts_.layouts.brick_administration().addresses_text();
      if (in_force != setting.value) setting.source = "store";
      setting.value = in_force;
    }
  }
  return all;
}

// --- exports ---

std::vector<ExportKeeper::MountedClient> Administrator::mounted_clients() const {
  std::vector<ExportKeeper::MountedClient> mounted;
  for (const auto& [id, client] : parts_.clients.all()) {
    for (Session* const session : client->sessions) {
      const std::vector<std::string> peers = session->peers();
      if (peers.empty()) continue;
      mounted.push_back({.name = client_name(*client), .host = std::string(host_of(peers.front()))});
      break;
    }
  }
  return mounted;
}

void Administrator::add_export(const console::ExportRules& rules, Done<console::Export> done) {
  exports_.add(rules, std::move(done));
}

void Administrator::change_export(uint16_t id, const console::ExportRules& rules,
                                  Done<console::Export> done) {
  parts_.user_groups.forget();
  exports_.change(id, rules, std::move(done));
}

void Administrator::remove_export(uint16_t id, Done<> done) {
  exports_.remove(id, [this, id, done = std::move(done)](const Result<>& removed) {
    if (!removed) return done(removed);
    revoke(held_under(id), "export-removed", [done](const Result<Revoked>&) { done({}); });
  });
}

void Administrator::recall_layouts_of(uint16_t export_id) {
  for (const auto& [client, inode] : held_under(export_id))
    parts_.layouts.layouts().recall_layout(client, inode);
}

Administrator::Holdings Administrator::held_under(uint16_t export_id) const {
  Holdings held;
  const LayoutTable& table = parts_.layouts.table();
  for (const uint64_t inode : table.files()) {
    for (const uint64_t client : table.clients_of_file(inode)) {
      const HeldLayout* layout = table.find(inode, client);
      if (layout != nullptr && layout->export_id() == export_id) held.emplace_back(client, inode);
    }
  }
  return held;
}

void Administrator::change_settings(const std::vector<std::pair<std::string, std::string>>& changes,
                                    Done<> done) {
  settings_.change(changes, std::move(done));
}

}  // namespace pnfsrdma::mds
