// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/console/inventory.h"
#include "shared/base/result.h"

namespace pnfsrdma::console {

// What the console may ask of the server it is the face of. Everything here belongs to the control loop: the
// console's threads come to it by control_loop.h. `done` is called exactly once, from the loop, at once or
// later; a change is durable then. Nothing blocks.
//
// Errors, by errno: ENOENT (no such thing), EEXIST (it is there already), EBUSY (something holds it; the text
// says what), EINVAL (what was asked for makes no sense; the text says why), EHOSTUNREACH (a brick does not
// answer), EAGAIN (not now), ENOTSUP (this server cannot).
class Administration {
 public:
  template <typename T = void>
  using Done = std::function<void(Result<T>)>;
  // What is left to be computed of an answer, by whoever asked, once, and in any thread: it needs nothing of the
  // server, and the loop does not wait for it.
  template <typename T>
  using Later = std::function<T()>;

  virtual ~Administration() = default;

  // --- what is ---
  virtual Numbers numbers() = 0;
  virtual void holdings(Done<Later<Holdings>> done) = 0;
  // Not of one moment: the counters of each client are as of some turn of the loop since it was asked.
  virtual void activity(Done<Later<Activity>> done) = 0;
  // The busiest first.
  virtual std::vector<BusyFile> busy_files(size_t count) = 0;
  virtual std::vector<Export> exports() = 0;
  virtual std::vector<Job> jobs() = 0;
  virtual std::vector<Setting> settings() = 0;
  virtual void file(const std::string& path, Done<File> done) = 0;
  virtual void block_map(const std::string& brick, Done<Later<BlockMap>> done) = 0;

  // --- layouts and clients: `done` when the handles are dead ---
  struct Revoked {
    uint64_t layouts = 0;
    uint64_t grants = 0;
  };
  // 0: of any client, of any file; not both.
  virtual void revoke(uint64_t client, uint64_t inode, Done<Revoked> done) = 0;
  virtual void expel(uint64_t client, Done<> done) = 0;

  // --- exports ---
  // Before it is made. EINVAL.
  virtual void export_effect(const ExportRules& rules, Done<ExportEffect> done) = 0;
  virtual void add_export(const ExportRules& rules, Done<Export> done) = 0;
  // The path stays.
  virtual void change_export(uint16_t id, const ExportRules& rules, Done<Export> done) = 0;
  virtual void remove_export(uint16_t id, Done<> done) = 0;

  // --- snapshots ---
  virtual TreeSnapshots snapshots() = 0;
  // `done` when it is taken. No name: the time. EEXIST, EINVAL, EBUSY (another one is being taken, or there are as many
  // as there may be, or no room), EAGAIN (somebody who writes does not answer: nothing has changed). With `force`
  // he loses his layouts, and the answer names him.
  virtual void take_snapshot(const std::string& name, bool force, Done<TreeSnapshot> done) = 0;
  // `done` when nobody sees it any more. EBUSY: it is pinned.
  virtual void remove_snapshot(uint32_t id, Done<> done) = 0;

  virtual void pin_snapshot(uint32_t id, bool pinned, Done<TreeSnapshot> done) = 0;
  // change_settings() changes it.
  virtual SnapshotSchedule snapshot_schedule() = 0;

  // --- quotas ---
  // Those of that kind (nullopt: of all) that have something or have limits, in order behind `after`, `most` of them at
  // most: fewer only at the end.
  struct QuotaPlace {
    QuotaKind kind = QuotaKind::kUser;
    uint64_t id = 0;
  };
  virtual void quotas(std::optional<QuotaKind> kind, std::optional<QuotaPlace> after, size_t most,
                      Done<QuotaPage> done) = 0;
  // ENOENT: there is no such tree; users and groups need not have anything.
  virtual void quota(const QuotaPlace& place, Done<Quota> done) = 0;
  // Counting begins, if it has not. None: it has none, whatever everybody's are; nullopt: its own go. ENOENT as above,
  // EINVAL (a soft limit above the hard one), EBUSY (there are too many).
  virtual void limit_quota(const QuotaPlace& place, const std::optional<QuotaLimits>& limits,
                           Done<Quota> done) = 0;
  // Counting begins, and what is in the directory is marked in the background. ENOENT, EINVAL (no directory of this
  // server), EEXIST, EBUSY (it is in a tree, one is in it, or there are too many).
  virtual void add_quota_tree(const std::string& path, Done<Quota> done) = 0;
  // The directory and what is in it stay. ENOENT.
  virtual void remove_quota_tree(uint64_t id, Done<> done) = 0;
  // What is absent stays. Off is not to be had again: EINVAL; so is a grace period of over ten years, and a soft limit
  // above the hard one. A default limit switches them on.
  struct QuotaChanges {
    bool on = false;
    std::optional<uint64_t> space_grace_seconds;
    std::optional<uint64_t> inode_grace_seconds;
    std::optional<QuotaLimits> user_default;
    std::optional<QuotaLimits> group_default;
  };
  virtual void change_quotas(const QuotaChanges& changes, Done<QuotaSettings> done) = 0;
  // Counts all again and mends what is wrong. EBUSY: not all is counted yet, or it is being counted again already.
  virtual Result<Job> recount_quotas(const std::string& user) = 0;

  // --- bricks ---
  virtual void add_brick(const std::string& address, Done<Brick> done) = 0;
  // EBUSY while it holds data; `holders` then says whose.
  virtual void remove_brick(const std::string& brick, Done<> done) = 0;
  virtual void holders(const std::string& brick, Done<Holders> done) = 0;
  // Draining: no new files go there.
  virtual void drain_brick(const std::string& brick, bool draining, Done<> done) = 0;
  // EEXIST: another one is called so. Empty: no name.
  virtual void name_brick(const std::string& brick, const std::string& name, Done<> done) = 0;
  virtual Result<Job> format_brick(const std::string& brick, const std::string& user) = 0;
  virtual Result<Job> check_brick(const std::string& brick, const std::string& user) = 0;
  // EBUSY when it cannot be cancelled.
  virtual Result<Job> cancel_job(uint64_t id) = 0;

  // --- settings: JSON text; "null" gives it back to the configuration file ---
  virtual void change_settings(const std::vector<std::pair<std::string, std::string>>& changes,
                               Done<> done) = 0;
};

}  // namespace pnfsrdma::console
