// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/console/administration.h"
#include "server/mds/admin/export_keeper.h"
#include "server/mds/admin/holdings_view.h"
#include "server/mds/admin/job_table.h"
#include "server/mds/admin/numbers_view.h"
#include "server/mds/admin/quota_administration.h"
#include "server/mds/admin/setting_keeper.h"
#include "server/mds/admin/snapshot_administration.h"
#include "server/mds/admin/snapshot_scheduler.h"
#include "server/mds/grants/held_layout.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/lease_keeper.h"

namespace pnfsrdma::mds {

// The MDS as its administrator sees it. Control loop only; everything named in Parts outlives it.
class Administrator final : public console::Administration {
 public:
  struct Parts {
    EventLoop& loop;
    const Clock& clock;
    Counters& counters;
    KeyValueStore& store;
    Namespace& names;
    Exports& exports;
    HandleKeys& handles;
    ClientTable& clients;
    SessionTable& sessions;
    OpenTable& opens;
    LockTable& locks;
    Delegations& delegations;
    GracePeriod& grace;
    const rpc::MemoryBudget& memory;
    LeaseKeeper& leases;
    DataPlane& layouts;
    const Compounds& compounds;
    const Config& config;
    ServerLimits& limits;
    UserGroups& user_groups;
    uint64_t start_count = 0;
    // What shares the metadata's log. Null: nobody does.
    std::function<std::optional<console::Cluster>()> cluster;
  };
  explicit Administrator(const Parts& parts);
  Administrator(const Administrator&) = delete;
  Administrator& operator=(const Administrator&) = delete;

  console::Numbers numbers() override;
  void holdings(Done<Later<console::Holdings>> done) override;
  void activity(Done<Later<console::Activity>> done) override;
  std::vector<console::BusyFile> busy_files(size_t count) override;
  std::vector<console::Export> exports() override { return exports_.all(); }
  std::vector<console::Job> jobs() override { return jobs_.all(); }
  std::vector<console::Setting> settings() override;
  void file(const std::string& path, Done<console::File> done) override;
  void block_map(const std::string& brick, Done<Later<console::BlockMap>> done) override;

  void revoke(uint64_t client, uint64_t inode, Done<Revoked> done) override;
  void expel(uint64_t client, Done<> done) override;

  void export_effect(const console::ExportRules& rules, Done<console::ExportEffect> done) override {
    exports_.effect(rules, std::move(done));
  }
  void add_export(const console::ExportRules& rules, Done<console::Export> done) override;
  void change_export(uint16_t id, const console::ExportRules& rules, Done<console::Export> done) override;
  void remove_export(uint16_t id, Done<> done) override;

  console::TreeSnapshots snapshots() override { return snapshots_.all(); }
  void take_snapshot(const std::string& name, bool force, Done<console::TreeSnapshot> done) override {
    snapshots_.take(name, force, std::move(done));
  }
  void remove_snapshot(uint32_t id, Done<> done) override { snapshots_.remove(id, std::move(done)); }
  void pin_snapshot(uint32_t id, bool pinned, Done<console::TreeSnapshot> done) override {
    snapshots_.pin(id, pinned, std::move(done));
  }
  console::SnapshotSchedule snapshot_schedule() override { return scheduler_.view(); }

  void quotas(std::optional<console::QuotaKind> kind, std::optional<QuotaPlace> after, size_t most,
              Done<console::QuotaPage> done) override {
    quotas_.page(kind, after, most, std::move(done));
  }
  void quota(const QuotaPlace& place, Done<console::Quota> done) override {
    quotas_.one(place, std::move(done));
  }
  void limit_quota(const QuotaPlace& place, const std::optional<console::QuotaLimits>& limits,
                   Done<console::Quota> done) override {
    quotas_.limit(place, limits, std::move(done));
  }
  void add_quota_tree(const std::string& path, Done<console::Quota> done) override {
    quotas_.add_tree(path, std::move(done));
  }
  void remove_quota_tree(uint64_t id, Done<> done) override { quotas_.remove_tree(id, std::move(done)); }
  void change_quotas(const QuotaChanges& changes, Done<console::QuotaSettings> done) override {
    quotas_.change(changes, std::move(done));
  }
  Result<console::Job> recount_quotas(const std::string& user) override {
    return quotas_.recount(jobs_, user);
  }

  void add_brick(const std::string& address, Done<console::Brick> done) override;
  void remove_brick(const std::string& brick, Done<> done) override;
  void drain_brick(const std::string& brick, bool draining, Done<> done) override;
  void name_brick(const std::string& brick, const std::string& name, Done<> done) override;
  void holders(const std::string& brick, Done<console::Holders> done) override;
  Result<console::Job> format_brick(const std::string& brick, const std::string& user) override;
  Result<console::Job> check_brick(const std::string& brick, const std::string& user) override;
  Result<console::Job> cancel_job(uint64_t id) override { return jobs_.cancel(id); }

  // At a start: those that were got through an export that is not there any more.
  void end_layouts_of_gone_exports();
  std::vector<std::string> reload(const Config& fresh);
  void change_settings(const std::vector<std::pair<std::string, std::string>>& changes, Done<> done) override;

 private:
  void add_bricks(console::Numbers& numbers);
  class Revocation;
  // kIdsPerTurn clients a turn.
  void visit_mounted(std::function<void(const ExportKeeper::MountedClient&)> visit,
                     std::function<void()> done) const;
  ExportKeeper::Effects effects_of_exports();
  // Those that were got through the export.
  void recall_layouts_of(uint16_t export_id);
  // Those of which it is so; `done` when nobody reaches anything by them any more.
  void revoke_layouts(std::string_view why, std::function<bool(const HeldLayout& held)> is_meant,
                      std::function<void()> done);
  // By any of the connections that it has; true if it has none now.
  bool is_admitted(ClientId client, uint16_t export_id) const;
  SnapshotScheduler::Works scheduled_works();
  // As it is set now.
  void update_schedule();

  const Parts parts_;
  const SteadyTime started_;
  SteadyTime aged_;  // the busy files
  ExportKeeper exports_;
  SettingKeeper settings_;
  SnapshotAdministration snapshots_;
  SnapshotScheduler scheduler_;
  QuotaAdministration quotas_;
  JobTable jobs_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
