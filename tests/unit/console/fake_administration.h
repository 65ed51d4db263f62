// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/console/administration.h"
#include "server/console/record_store.h"

namespace pnfsrdma::console::testing {

inline const std::string kBrickId = "00112233-4455-6677-8899-aabbccddeeff";
inline constexpr uint64_t kAlice = 0xA11CE;
inline constexpr uint64_t kFile = 42;
inline constexpr uint64_t kTooMany = 4'000'000;  // of quotas: whose limits are refused

// A server of one brick, one client and one layout, that remembers what was asked of it. In the loop only.
class FakeAdministration final : public Administration {
 public:
  FakeAdministration() {
    clients.push_back({.id = kAlice, .name = "alice", .owner = "Linux \xFF", .confirmed = true});
    layouts.push_back(
        {.client = kAlice,
         .client_name = "alice",
         .inode = kFile,
         .path = "/data/file",
         .export_id = 1,
         .state = LayoutState::kHeld,
         .grants = {{.id = 7, .offset = 0, .length = 4096, .writable = true, .brick = kBrickId}}});
    all_exports.push_back({.id = 1, .rules = {.path = "/"}, .directory_exists = true});
    brick.id = kBrickId;
    brick.first_id = "new-1";
    brick.address = "unix:/run/brick.sock";
    brick.state = BrickState::kReady;
    brick.durability = Durability::kPower;
    brick.block_bytes = 2 << 20;
    brick.blocks = 100;
    brick.counted = true;
    brick.free_blocks = 90;
    brick.paths = {{"tcp", "192.0.2.7.78.83"}};
    all_settings = {{"log_level", "\"info\"", SettingSource::kDefault, true},
                    {"lease_seconds", "30", SettingSource::kFile, false}};
  }

  Numbers numbers() override {
    ++numbers_asked;
    Numbers now = counters;
    now.clients = static_cast<uint32_t>(clients.size());
    now.bricks = {brick};
    now.checks = {{"metadata", HealthStatus::kOk, "Commits become durable.", ""}};
    return now;
  }
  void holdings(Done<Later<Holdings>> done) override {
    done([all = Holdings{clients, layouts}] { return all; });
  }
  void activity(Done<Later<Activity>> done) override {
    Activity now{.clients = {{.id = kAlice, .name = "alice", .served = served}}, .exports = {}, .bricks = {}};
    for (const Export& one : all_exports)
      now.exports.push_back({.id = one.id, .path = one.rules.path, .served = served});
    now.bricks = {{.brick = kBrickId, .clients = {{kAlice, direct}}}};
    done([now] { return now; });
  }
  std::vector<BusyFile> busy_files(size_t count) override {
    std::vector<BusyFile> busy = files;
    if (busy.size() > count) busy.resize(count);
    return busy;
  }
  std::vector<Export> exports() override { return all_exports; }
  std::vector<Job> jobs() override { return all_jobs; }
  std::vector<Setting> settings() override { return all_settings; }
  void file(const std::string& path, Done<File> done) override {
    if (path != "/data/file") return done(fail(ENOENT, "there is no file " + path));
    done(File{.path = path, .inode = kFile, .type = FileType::kRegular, .size = 4096, .mode = 0644});
  }
  void block_map(const std::string& id, Done<Later<BlockMap>> done) override {
    if (id != kBrickId) return done(fail(ENOENT, "there is no brick " + id));
    ++maps_asked;
    const BlockMap map{.brick = id,
                       .block_bytes = 2 << 20,
                       .blocks = 100,
                       .runs = {{.block = 0,
                                 .count = 10,
                                 .state = BlockState::kGrantedWrite,
                                 .grants = {{.client = kAlice, .inode = kFile}}},
                                {.block = 10, .count = 90, .state = BlockState::kFree}}};
    done([map] { return map; });
  }

  void revoke(uint64_t client, uint64_t inode, Done<Revoked> done) override {
    const size_t before = layouts.size();
    std::erase_if(layouts, [&](const Layout& layout) {
      return (client == 0 || client == layout.client) && (inode == 0 || inode == layout.inode);
    });
    done(Revoked{before - layouts.size(), before - layouts.size()});
  }
  void expel(uint64_t client, Done<> done) override {
    std::erase_if(clients, [&](const Client& one) { return one.id == client; });
    done({});
  }
  void export_effect(const ExportRules& rules, Done<ExportEffect> done) override {
    if (rules.path == "/../") return done(fail(EINVAL, "no path"));
    done(ExportEffect{.inside = "/", .clients = 2, .losing = {"alice-1"}, .text = "One loses it."});
  }
  void add_export(const ExportRules& rules, Done<Export> done) override {
    for (const Export& one : all_exports) {
      if (one.rules.path == rules.path) return done(fail(EEXIST, rules.path + " is exported already"));
    }
    begun = true;
    if (silent) return;
    all_exports.push_back({.id = next_export++, .rules = rules, .stored = true});
    done(all_exports.back());
  }
  void change_export(uint16_t id, const ExportRules& rules, Done<Export> done) override {
    for (Export& one : all_exports) {
      if (one.id != id) continue;
      if (one.rules.path != rules.path) return done(fail(EINVAL, "the path stays"));
      one.rules = rules;
      return done(one);
    }
    done(fail(ENOENT, "none"));
  }
  void remove_export(uint16_t id, Done<> done) override {
    std::erase_if(all_exports, [&](const Export& one) { return one.id == id; });
    done({});
  }
  TreeSnapshots snapshots() override { return {all_snapshots, 4096}; }
  void take_snapshot(const std::string& name, bool force, Done<TreeSnapshot> done) override {
    for (const TreeSnapshot& one : all_snapshots) {
      if (one.name == name) return done(fail(EEXIST, "there is a snapshot " + name + " already"));
    }
    const auto id = static_cast<uint32_t>(all_snapshots.size() + 1);
    all_snapshots.push_back({.id = id, .name = name, .created = {}, .state = SnapshotState::kReady});
    TreeSnapshot taken = all_snapshots.back();
    if (force) taken.revoked.push_back({.id = 0xff, .name = "host-a", .layouts = 2});
    done(std::move(taken));
  }
  void remove_snapshot(uint32_t id, Done<> done) override {
    for (const TreeSnapshot& one : all_snapshots) {
      if (one.id == id && one.pinned) return done(fail(EBUSY, "it is pinned"));
    }
    std::erase_if(all_snapshots, [&](const TreeSnapshot& one) { return one.id == id; });
    done({});
  }
  void pin_snapshot(uint32_t id, bool pinned, Done<TreeSnapshot> done) override {
    for (TreeSnapshot& one : all_snapshots) {
      if (one.id != id) continue;
      one.pinned = pinned;
      return done(one);
    }
    done(fail(ENOENT, "none"));
  }
  SnapshotSchedule snapshot_schedule() override { return schedule; }
  void quotas(std::optional<QuotaKind> kind, std::optional<QuotaPlace> after, size_t most,
              Done<QuotaPage> done) override {
    QuotaPage page{.settings = quota_settings, .all = {}};
    for (const auto& [place, quota] : all_quotas) {
      if (kind && place.first != *kind) continue;
      if (after && place <= std::pair(after->kind, after->id)) continue;
      if (page.all.size() < most) page.all.push_back(quota);
    }
    done(page);
  }
  void quota(const QuotaPlace& place, Done<Quota> done) override {
    const auto found = all_quotas.find({place.kind, place.id});
    if (found != all_quotas.end()) return done(found->second);
    if (place.kind == QuotaKind::kTree) return done(fail(ENOENT, "there is no such quota tree"));
    const QuotaLimits none;
    Quota quota{.kind = place.kind, .id = place.id, .path = {}, .limits = {}, .space = {}, .inodes = {}};
    if (place.kind == QuotaKind::kUser && quota_settings.user_default != none) {
      quota.limits_from = QuotaSource::kDefault;
      quota.limits = quota_settings.user_default;
    }
    done(quota);
  }
  void limit_quota(const QuotaPlace& place, const std::optional<QuotaLimits>& limits,
                   Done<Quota> done) override {
    if (place.id == kTooMany) return done(fail(EBUSY, "there are too many limits"));
    quota(place, [&](Result<Quota> before) {
      if (!before) return done(before);
      quota_settings.state = QuotaState::kOn;
      before->limits = limits.value_or(QuotaLimits{});
      before->limits_from = limits ? QuotaSource::kOwn : QuotaSource::kNone;
      all_quotas[{place.kind, place.id}] = *before;
      done(*before);
    });
  }
  void add_quota_tree(const std::string& path, Done<Quota> done) override {
    if (path == "/none") return done(fail(ENOENT, "there is no file /none"));
    if (!path.starts_with('/')) return done(fail(EINVAL, "path must be absolute"));
    for (const auto& [place, quota] : all_quotas) {
      if (quota.path == path) return done(fail(EEXIST, path + " is a quota tree already"));
    }
    const Quota made{.kind = QuotaKind::kTree,
                     .id = next_tree++,
                     .path = path,
                     .complete = false,
                     .limits = {},
                     .space = {},
                     .inodes = {}};
    all_quotas[{made.kind, made.id}] = made;
    done(made);
  }
  void remove_quota_tree(uint64_t id, Done<> done) override {
    all_quotas.erase({QuotaKind::kTree, id});
    done({});
  }
  void change_quotas(const QuotaChanges& changes, Done<QuotaSettings> done) override {
    if (changes.on && quota_settings.state == QuotaState::kOff) {
      quota_settings.state = QuotaState::kCounting;
      quota_settings.counted_share = 0.43;
    }
    quota_settings.space_grace_seconds =
        changes.space_grace_seconds.value_or(quota_settings.space_grace_seconds);
    quota_settings.inode_grace_seconds =
        changes.inode_grace_seconds.value_or(quota_settings.inode_grace_seconds);
    quota_settings.user_default = changes.user_default.value_or(quota_settings.user_default);
    quota_settings.group_default = changes.group_default.value_or(quota_settings.group_default);
    done(quota_settings);
  }
  Result<Job> recount_quotas(const std::string& user) override {
    for (const Job& job : all_jobs) {
      if (job.kind == JobKind::kRecount) return fail(EBUSY, "it is being counted again already");
    }
    all_jobs.push_back({.id = all_jobs.size() + 1,
                        .kind = JobKind::kRecount,
                        .subject = "quotas",
                        .state = JobState::kRunning,
                        .user = user});
    return all_jobs.back();
  }
  void add_brick(const std::string& address, Done<Brick> done) override {
    if (address == "tcp:192.0.2.1:1") return done(fail(EHOSTUNREACH, "nobody answers there"));
    if (address == brick.address) return done(fail(EEXIST, "it is there"));
    Brick made = brick;
    made.address = address;
    done(made);
  }
  void remove_brick(const std::string&, Done<> done) override {
    if (brick_in_use) return done(fail(EBUSY, "it holds 3 files"));
    done({});
  }
  void drain_brick(const std::string& id, bool draining, Done<> done) override {
    if (id != kBrickId) return done(fail(ENOENT, "there is no brick " + id));
    brick.state = draining ? BrickState::kDraining : BrickState::kReady;
    done({});
  }
  void name_brick(const std::string& id, const std::string& name, Done<> done) override {
    if (id != kBrickId) return done(fail(ENOENT, "there is no brick " + id));
    if (name == "taken") return done(fail(EEXIST, "another brick is called so"));
    brick.name = name;
    done({});
  }
  void holders(const std::string&, Done<Holders> done) override { done(Holders{3, 4096, {"/"}}); }
  Result<Job> format_brick(const std::string& id, const std::string& user) override {
    if (id != kBrickId) return fail(ENOENT, "there is no brick " + id);
    if (brick_in_use) return fail(EBUSY, "it holds 3 files");
    all_jobs.push_back({.id = all_jobs.size() + 1,
                        .kind = JobKind::kFormat,
                        .subject = id,
                        .state = JobState::kRunning,
                        .user = user});
    return all_jobs.back();
  }
  Result<Job> check_brick(const std::string& id, const std::string& user) override {
    if (id != kBrickId) return fail(ENOENT, "there is no brick " + id);
    for (const Job& job : all_jobs) {
      if (job.state == JobState::kRunning && job.subject == id)
        return fail(EBUSY, "a job works on it already");
    }
    all_jobs.push_back({.id = all_jobs.size() + 1,
                        .kind = JobKind::kCheck,
                        .subject = id,
                        .state = JobState::kRunning,
                        .user = user});
    return all_jobs.back();
  }
  Result<Job> cancel_job(uint64_t id) override {
    if (id == 0 || id > all_jobs.size()) return fail(ENOENT, "there is no such job");
    all_jobs[id - 1].state = JobState::kCancelled;
    return all_jobs[id - 1];
  }
  void change_settings(const std::vector<std::pair<std::string, std::string>>& changes,
                       Done<> done) override {
    for (const auto& [name, value] : changes) {
      if (name == "snapshot_schedule") {
        const auto wanted = nlohmann::json::parse(value);
        if (wanted["hourly"].get<uint32_t>() + wanted["daily"].get<uint32_t>() > 4000)
          return done(fail(EINVAL, "too many"));
        schedule.daily = wanted["daily"];
        schedule.hour = wanted["hour"];
        schedule.next = {{SnapshotClass::kDaily, {}}};
        schedule.failure = {SnapshotClass::kDaily, {}, "a brick is away"};
      }
      for (Setting& setting : all_settings) {
        if (setting.name == name) setting = {name, value, SettingSource::kStore, true};
      }
    }
    done({});
  }

  std::vector<Client> clients;
  std::vector<Layout> layouts;
  std::vector<Export> all_exports;
  std::vector<TreeSnapshot> all_snapshots;
  SnapshotSchedule schedule;
  std::map<std::pair<QuotaKind, uint64_t>, Quota> all_quotas;
  QuotaSettings quota_settings{.space_grace_seconds = 604800, .inode_grace_seconds = 604800};
  uint64_t next_tree = 1;
  std::vector<Job> all_jobs;
  std::vector<Setting> all_settings;
  Brick brick;
  Numbers counters;
  ServedCounters served;
  DirectCounters direct;
  std::vector<BusyFile> files;
  bool brick_in_use = true;
  std::atomic<bool> silent = false;  // add_export() is begun and not answered
  std::atomic<bool> begun = false;
  uint16_t next_export = 2;
  int numbers_asked = 0;
  int maps_asked = 0;
};

class FakeRecords final : public RecordStore {
 public:
  Result<std::map<std::string, std::string>> load() override { return records; }
  void change(const Changes& changes, std::function<void(Result<>)> done) override {
    if (fails) return done(fail(EIO, "the medium"));
    for (const auto& [key, value] : changes) {
      if (value) {
        records[key] = *value;
      } else {
        records.erase(key);
      }
    }
    done({});
  }

  std::map<std::string, std::string> records;
  bool fails = false;
};

}  // namespace pnfsrdma::console::testing
