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
#include "server/mds/admin/numbers_view.h"

namespace pnfsrdma::mds {

namespace {

// The export a file is in by its path: the longest that leads to it; empty: none.
std::string export_of(const Exports& exports, const std::string& path) {
  std::string longest;
  for (const Export* item : exports.all()) {
    const bool within = item->path == "/" || path == item->path || path.starts_with(item->path + "/");
    if (within && item->path.size() > longest.size()) longest = item->path;
  }
  return longest;
}

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

console::HealthCheck check_of(const console::Brick& brick) {
  const std::string name = name_of(brick);
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
    if (const auto number = administration.find(brick.id)) {
      const brick::StatisticsResult& now = administration.statistics(*number);
      brick.counters.flush_failures = now.flush_failures;
      brick.counters.damaged_blocks = now.damaged_blocks;
      brick.counters.waiting = now.waiting_changes + now.waiting_work;
    }
    numbers.checks.push_back(check_of(brick));
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
  // Those of a file come one after the other.
  const auto name = [this, inode = kNoInode,
                     path = std::optional<std::string>()](MappedGrant& grant) mutable {
    if (std::exchange(inode, grant.inode) != grant.inode) path = parts_.names.last_path(grant.inode);
    grant.path = path;
    if (const auto client = parts_.clients.find(grant.client)) grant.client_name = client_name(*client);
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
  parts_.layouts.brick_administration().holders(
      brick, [this, done = std::move(done)](const Result<BrickAdministration::Holders>& found) {
        if (!found) return done(std::unexpected(found.error()));
        console::Holders shown{.files = found->files, .bytes = found->bytes, .exports = {}};
        std::set<std::string> exports;
        for (const InodeId inode : found->inodes) {
          // One whose path is not known may be in any.
          const auto path = parts_.names.last_path(inode);
          if (path) exports.insert(export_of(parts_.exports, *path));
          if (!path) {
            for (const Export* item : parts_.exports.all()) exports.insert(item->path);
          }
        }
        exports.erase("");
        shown.exports.assign(exports.begin(), exports.end());
        done(std::move(shown));
      });
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
