// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "server/console/inventory_names.h"
#include "server/console/throughput.h"
#include "server/mds/admin/administrator.h"
#include "server/mds/admin/brick_administration.h"
#include "server/mds/admin/client_names.h"
#include "server/mds/admin/id_walk.h"
#include "server/mds/admin/numbers_view.h"

namespace pnfsrdma::mds {

namespace {

// The exports that files are in, by their paths.
class ExportsOfFiles {
 public:
  explicit ExportsOfFiles(const Exports& exports) {
    for (const Export* item : exports.all()) paths_.insert(item->path);
  }
  // One whose path is not known may be in any.
  void add(const std::optional<std::string>& path) {
    if (!path) found_ = paths_;
    if (!path || found_.size() == paths_.size()) return;
    // The longest that leads to it.
    for (std::string at = *path;;) {
      if (paths_.contains(at)) {
        found_.insert(at);
        return;
      }
      if (at.size() <= 1) return;
      at.resize(std::max<size_t>(at.rfind('/'), 1));
    }
  }
  std::vector<std::string> all() const { return {found_.begin(), found_.end()}; }

 private:
  std::set<std::string> paths_;
  std::set<std::string> found_;
};

std::string name_of(const console::Brick& brick) {
  return brick.name.empty() ? brick.address : brick.name;
}

// What to do about a brick that is not ready.
std::string remedy_of(const console::Brick& brick) {
  if (brick.state == console::BrickState::kReconciling)
    return "Wait: its blocks are being reconciled with the metadata.";
  if (brick.state == console::BrickState::kForeign)
    return "Do not format it before you know whose data it has. Start pnfsrdma-brickd with the pool that "
           "belongs here, or correct its address. If the other server is to give it up, remove it there.";
  if (brick.state == console::BrickState::kFenced)
    return "A second pnfsrdma-mdsd runs with the same metadata: stop one of them, then restart this one.";
  return "Check that pnfsrdma-brickd runs and answers at " + brick.address +
         "; until then its files wait, then fail with EIO.";
}

console::HealthCheck check_of(const console::Brick& brick, bool met_limit) {
  const std::string name = name_of(brick);
  if (brick.usable() && met_limit)
    return {.name = "bricks",
            .status = console::HealthStatus::kWarning,
            .detail = "Brick " + name + " had no more sessions or registrations for some client, lately.",
            .fix =
                "Raise limits.sessions or limits.registrations in its configuration, whichever its log "
                "names in limit-met; until then such clients do I/O through this server."};
  if (brick.state == console::BrickState::kReady)
    return {.name = "bricks",
            .status = console::HealthStatus::kOk,
            .detail = "Brick " + name + " is ready.",
            .fix = {}};
  if (brick.state == console::BrickState::kDraining)
    return {.name = "bricks",
            .status = console::HealthStatus::kWarning,
            .detail = "Brick " + name + " gets no new data.",
            .fix = "Remove it when it is empty, or let it take data again."};
  return {.name = "bricks",
          .status = brick.state == console::BrickState::kReconciling ? console::HealthStatus::kWarning
                                                                     : console::HealthStatus::kFailed,
          .detail = "Brick " + name + " is " + to_string(brick.state) +
                    (brick.detail.empty() ? "." : ": " + brick.detail),
          .fix = remedy_of(brick)};
}

}  // namespace

void Administrator::add_bricks(console::Numbers& numbers) {
  BrickAdministration& administration = parts_.layouts.brick_administration();
  numbers.bricks = administration.bricks();
  for (console::Brick& brick : numbers.bricks) {
    bool met_limit = false;
    if (const auto number = administration.find(brick.id)) {
      met_limit = administration.met_limit_lately(*number);
      const brick::StatisticsResult& now = administration.statistics(*number);
      brick.counters.flush_failures = now.flush_failures;
      brick.counters.damaged_blocks = now.damaged_blocks;
      brick.counters.waiting = now.waiting_changes + now.waiting_work;
    }
    numbers.checks.push_back(check_of(brick, met_limit));
    if (percentile(brick.turns.times, 1) > 0)
      numbers.checks.push_back(check_of_turns("Brick " + name_of(brick), brick.turns));
  }
  if (numbers.bricks.empty())
    numbers.checks.push_back({.name = "bricks",
                              .status = console::HealthStatus::kFailed,
                              .detail = "This server has no brick: files cannot hold data.",
                              .fix = "Add one: pnfsrdma brick add ADDRESS."});
}

void Administrator::block_map(const std::string& brick, Done<Later<console::BlockMap>> done) {
  // Those of a layout come one after the other.
  const auto name = [this, inode = kNoInode, path = std::optional<std::string>(), holder = ClientId{0},
                     holder_name = std::string()](MappedGrant& grant) mutable {
    if (std::exchange(inode, grant.inode) != grant.inode) path = parts_.names.last_path(grant.inode);
    grant.path = path;
    if (std::exchange(holder, grant.client) != grant.client) {
      const auto client = parts_.clients.find(grant.client);
      holder_name = client ? client_name(*client) : "";
    }
    grant.client_name = holder_name;
  };
  parts_.layouts.brick_administration().block_map(brick, name, std::move(done));
}

void Administrator::add_brick(const std::string& address, Done<console::Brick> done) {
  parts_.layouts.brick_administration().add(address, std::move(done));
}

void Administrator::remove_brick(const std::string& brick, Done<> done) {
  parts_.layouts.brick_administration().remove(brick, std::move(done));
}

void Administrator::drain_brick(const std::string& brick, bool draining, Done<> done) {
  parts_.layouts.brick_administration().set_draining(brick, draining, std::move(done));
}

void Administrator::name_brick(const std::string& brick, const std::string& name, Done<> done) {
  parts_.layouts.brick_administration().set_name(brick, name, std::move(done));
}

void Administrator::holders(const std::string& brick, Done<console::Holders> done) {
  const auto view = [this, done = std::move(done)](Result<BrickAdministration::Holders> found) {
    if (!found) return done(std::unexpected(found.error()));
    const auto exports = std::make_shared<ExportsOfFiles>(parts_.exports);
    walk_ids(
        parts_.loop, std::move(found->inodes), lifetime_.token(),
        [this, exports](uint64_t inode) { exports->add(parts_.names.last_path(inode)); },
        [done, exports, files = found->files, bytes = found->bytes] {
          done(console::Holders{.files = files, .bytes = bytes, .exports = exports->all()});
        });
  };
  parts_.layouts.brick_administration().holders(brick, view);
}

Result<console::Job> Administrator::format_brick(const std::string& brick, const std::string& user) {
  TRY_ASSIGN(const std::string in_use, parts_.layouts.brick_administration().why_in_use(brick));
  if (!in_use.empty()) return fail(EBUSY, in_use);
  return jobs_.start(console::JobKind::kFormat, brick, user, [&](JobTable::Events events) {
    return parts_.layouts.brick_administration().format(
        brick, {.on_progress = std::move(events.on_progress), .on_end = std::move(events.on_end)});
  });
}

Result<console::Job> Administrator::check_brick(const std::string& brick, const std::string& user) {
  TRY(parts_.layouts.brick_administration().find(brick));
  return jobs_.start(console::JobKind::kCheck, brick, user, [&](JobTable::Events events) {
    return parts_.layouts.brick_administration().check(
        brick, {.on_progress = std::move(events.on_progress), .on_end = std::move(events.on_end)});
  });
}

}  // namespace pnfsrdma::mds
