// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/administrator.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "server/mds/admin/activity_view.h"
#include "server/mds/admin/brick_administration.h"
#include "server/mds/admin/client_names.h"
#include "server/mds/admin/cluster_survey.h"
#include "server/mds/admin/file_view.h"
#include "server/mds/admin/id_walk.h"
#include "server/mds/admin/layout_walk.h"
#include "server/mds/bricks/brick_set.h"
#include "server/mds/grants/layout_table.h"
#include "server/mds/layout/layouts.h"
#include "server/mds/layout/snapshot_keeper.h"
#include "server/mds/meta/read_then.h"
#include "server/mds/ops/ended_handles.h"
#include "server/mds/ops/network.h"
#include "server/mds/state/session.h"
#include "shared/base/join.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {
constexpr Milliseconds kScheduleAfterStart = std::chrono::seconds(15);
}  // namespace

Administrator::Administrator(const Parts& parts)
    : parts_(parts),
      started_(parts.clock.now()),
      aged_(started_),
      exports_(parts.store, parts.exports, parts.handles, effects_of_exports(),
               [this](auto visit, auto done) { visit_mounted(std::move(visit), std::move(done)); }),
      settings_(parts.store, parts.config, parts.limits),
      snapshots_(parts.clock, parts.names, parts.exports, parts.layouts.snapshots(),
                 [this](uint64_t id) {
                   const auto client = parts_.clients.find(id);
                   return client ? client_name(*client) : fmt::format("{:016x}", id);
                 }),
      scheduler_(parts.loop, parts.clock, scheduled_works()),
      quotas_(parts.loop, parts.clock, parts.names),
      jobs_(parts.clock) {
  // Bricks and clients come back first.
  scheduler_.set(settings_.snapshot_schedule(), kScheduleAfterStart);
}

ExportKeeper::Effects Administrator::effects_of_exports() {
  return {.narrowed =
              [this](uint16_t id) {
                recall_layouts_of(id);
                recall_of_export(parts_.delegations, parts_.handles, id);
              },
          .handles_ended = [this] { recall_under_ended_handles(parts_.delegations, parts_.handles); }};
}

SnapshotScheduler::Works Administrator::scheduled_works() {
  return {
      .all = [this]() -> const AllSnapshots& { return parts_.names.snapshots().all(); },
      .take =
          [this](const std::string& name, SnapshotClass schedule, SnapshotScheduler::Works::Done done) {
            snapshots_.take_for(schedule, name,
                                [done = std::move(done)](const Result<SnapshotNumber>& taken) {
                                  taken ? done({}) : done(std::unexpected(taken.error()));
                                });
          },
      .remove = [this](SnapshotNumber number,
                       SnapshotScheduler::Works::Done done) { snapshots_.remove(number, std::move(done)); }};
}

console::Numbers Administrator::numbers() {
  const EventLoop::Step step(parts_.loop, "console-numbers");
  console::Numbers numbers = view_numbers({.clock = parts_.clock,
                                           .counters = parts_.counters,
                                           .store = parts_.store,
                                           .clients = parts_.clients,
                                           .sessions = parts_.sessions,
                                           .opens = parts_.opens,
                                           .locks = parts_.locks,
                                           .delegations = parts_.delegations.table(),
                                           .grace = parts_.grace,
                                           .layouts = parts_.layouts,
                                           .compounds = &parts_.compounds,
                                           .started = started_,
                                           .start_count = parts_.start_count});
  numbers.snapshots = static_cast<uint32_t>(parts_.names.snapshots().all().size());
  numbers.snapshot_bytes = parts_.layouts.snapshots().held();
  numbers.turns = view_turns(parts_.loop.turns(), parts_.loop.now());
  numbers.checks.push_back(check_of_turns("This server", numbers.turns));
  add_memory(parts_.memory, numbers);
  add_old_handles(parts_.handles.old_handles(), numbers);
  add_port_refusals(parts_.counters, parts_.exports, parts_.clock.now(), numbers);
  add_name_service(parts_.user_groups, numbers);
  add_bricks(numbers);
  snapshots_.add_check(numbers);
  scheduler_.add_to(numbers);
  add_broken_paths(parts_.layouts.paths(), parts_.clients, parts_.clock.now(), numbers);
  if (parts_.cluster) add_cluster(parts_.cluster(), numbers);
  return numbers;
}

void Administrator::holdings(Done<Later<console::Holdings>> done) {
  view_holdings({.loop = parts_.loop,
                 .clock = parts_.clock,
                 .clients = parts_.clients,
                 .opens = parts_.opens,
                 .locks = parts_.locks,
                 .delegations = parts_.delegations.table(),
                 .layouts = parts_.layouts,
                 .names = parts_.names},
                lifetime_.token(), std::move(done));
}

void Administrator::activity(Done<Later<console::Activity>> done) {
  const SteadyTime now = parts_.clock.now();
  parts_.counters.busy_files.age(std::chrono::duration<double>(now - std::exchange(aged_, now)).count());
  view_activity({.loop = parts_.loop,
                 .counters = parts_.counters,
                 .clients = parts_.clients,
                 .exports = parts_.exports,
                 .bricks = parts_.layouts.brick_administration()},
                lifetime_.token(), std::move(done));
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

// Revokes what is handed to it; `done` when nobody can use any of that any more.
class Administrator::Revocation {
 public:
  Revocation(Layouts& layouts, std::string_view why, Done<Revoked> done)
      : layouts_(layouts), why_(why), join_([count = count_, done = std::move(done)] { done(*count); }) {}

  void add(uint64_t client, uint64_t inode) const {
    log_info("mds", "layout-revoked client={:#x} inode={} why={}", client, inode, why_);
    layouts_.revoke_layout(client, inode,
                           [count = count_, end = join_.part()](std::optional<size_t> handles) {
                             if (handles) {
                               ++count->layouts;
                               count->grants += *handles;
                             }
                             end();
                           });
  }
  void end() const { join_.end(); }

 private:
  Layouts& layouts_;
  const std::string_view why_;  // a literal
  const std::shared_ptr<Revoked> count_ = std::make_shared<Revoked>();
  const Join join_;
};

void Administrator::revoke(uint64_t client, uint64_t inode, Done<Revoked> done) {
  const auto revocation =
      std::make_shared<Revocation>(parts_.layouts.layouts(), "administrator", std::move(done));
  const LayoutTable& table = parts_.layouts.table();
  if (inode == 0) {
    if (client == 0) return revocation->end();
    return walk_layouts(
        parts_.loop, table, client, lifetime_.token(),
        [revocation](const HeldLayout& held) { revocation->add(held.client(), held.inode()); },
        [revocation] { revocation->end(); });
  }
  std::vector<uint64_t> holders = table.clients_of_file(inode);
  if (client != 0) std::erase_if(holders, [client](uint64_t holder) { return holder != client; });
  walk_ids(
      parts_.loop, std::move(holders), lifetime_.token(),
      [revocation, inode](uint64_t holder) { revocation->add(holder, inode); },
      [revocation] { revocation->end(); });
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
      setting.source = console::SettingSource::kStore;
    }
    if (setting.name == "bricks") {
      const std::string in_force = parts_.layouts.brick_administration().addresses_text();
      if (in_force != setting.value) setting.source = console::SettingSource::kStore;
      setting.value = in_force;
    }
  }
  return all;
}

// --- exports ---

void Administrator::visit_mounted(std::function<void(const ExportKeeper::MountedClient&)> visit,
                                  std::function<void()> done) const {
  std::vector<uint64_t> ids;
  for (const auto& [id, client] : parts_.clients.all()) ids.push_back(id);
  const auto look = [this, visit = std::move(visit)](uint64_t id) {
    const auto client = parts_.clients.find(id);
    if (!client) return;
    for (const Session* const session : client->sessions) {
      const std::vector<std::string> peers = session->peers();
      if (peers.empty()) continue;
      return visit({.name = client_name(*client), .host = std::string(host_of(peers.front()))});
    }
  };
  walk_ids(parts_.loop, std::move(ids), lifetime_.token(), look, std::move(done));
}

void Administrator::add_export(const console::ExportRules& rules, Done<console::Export> done) {
  exports_.add(rules, std::move(done));
}

void Administrator::change_export(uint16_t id, const console::ExportRules& rules,
                                  Done<console::Export> done) {
  parts_.user_groups.forget();
  exports_.change(id, rules, [this, id, done = std::move(done)](const Result<console::Export>& changed) {
    if (!changed) return done(changed);
    const auto is_shut_out = [this, id](const HeldLayout& held) {
      return held.export_id() == id && !is_admitted(held.client(), id);
    };
    revoke_layouts("export-changed", is_shut_out, [changed, done] { done(changed); });
  });
}

bool Administrator::is_admitted(ClientId client, uint16_t export_id) const {
  const Export* const to = parts_.exports.find(export_id);
  const auto known = parts_.clients.find(client);
  if (to == nullptr || !known) return false;
  bool connected = false;
  for (const Session* const session : known->sessions) {
    for (const std::string& peer : session->peers()) {
      if (to->admits(host_of(peer))) return true;
      connected = true;
    }
  }
  return !connected;
}

void Administrator::remove_export(uint16_t id, Done<> done) {
  exports_.remove(id, [this, id, done = std::move(done)](const Result<>& removed) {
    if (!removed) return done(removed);
    const auto is_of_it = [id](const HeldLayout& held) { return held.export_id() == id; };
    revoke_layouts("export-removed", is_of_it, [done] { done({}); });
  });
}

void Administrator::end_layouts_of_gone_exports() {
  const auto is_gone = [this](const HeldLayout& held) {
    return parts_.exports.find(held.export_id()) == nullptr;
  };
  revoke_layouts("export-gone", is_gone, [] {});
}

void Administrator::revoke_layouts(std::string_view why, std::function<bool(const HeldLayout& held)> is_meant,
                                   std::function<void()> done) {
  const auto revocation = std::make_shared<Revocation>(
      parts_.layouts.layouts(), why, [done = std::move(done)](const Result<Revoked>&) { done(); });
  walk_layouts(
      parts_.loop, parts_.layouts.table(), 0, lifetime_.token(),
      [revocation, is_meant = std::move(is_meant)](const HeldLayout& held) {
        if (is_meant(held)) revocation->add(held.client(), held.inode());
      },
      [revocation] { revocation->end(); });
}

void Administrator::recall_layouts_of(uint16_t export_id) {
  walk_layouts(
      parts_.loop, parts_.layouts.table(), 0, lifetime_.token(),
      [this, export_id](const HeldLayout& held) {
        if (held.export_id() == export_id)
          parts_.layouts.layouts().recall_layout(held.client(), held.inode());
      },
      [] {});
}

void Administrator::change_settings(const std::vector<std::pair<std::string, std::string>>& changes,
                                    Done<> done) {
  settings_.change(changes, std::move(done));
  update_schedule();
}

std::vector<std::string> Administrator::reload(const Config& fresh) {
  std::vector<std::string> waiting = settings_.reload(fresh);
  update_schedule();
  return waiting;
}

void Administrator::update_schedule() {
  if (settings_.snapshot_schedule() != scheduler_.schedule()) scheduler_.set(settings_.snapshot_schedule());
}

}  // namespace pnfsrdma::mds
