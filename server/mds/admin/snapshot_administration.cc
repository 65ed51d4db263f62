// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/snapshot_administration.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <algorithm>

#include <cerrno>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

console::SnapshotState shown(SnapshotState state) {
  switch (state) {
    case SnapshotState::kMaking:
      return console::SnapshotState::kMaking;
    case SnapshotState::kReady:
      return console::SnapshotState::kReady;
    case SnapshotState::kGoing:
      break;
  }
  return console::SnapshotState::kDeleting;
}

console::TreeSnapshot shown(const Snapshot& snapshot) {
  console::TreeSnapshot shown_one{.id = snapshot.number,
                                  .name = snapshot.name,
                                  .created = snapshot.created,
                                  .state = shown(snapshot.state),
                                  .schedule = {},
                                  .pinned = snapshot.pinned,
                                  .revoked = {}};
  if (snapshot.schedule != SnapshotClass::kNone) shown_one.schedule = shown(snapshot.schedule);
  return shown_one;
}

}  // namespace

console::SnapshotClass shown(SnapshotClass schedule) {
  switch (schedule) {
    case SnapshotClass::kNone:
    case SnapshotClass::kHourly:
      break;
    case SnapshotClass::kDaily:
      return console::SnapshotClass::kDaily;
    case SnapshotClass::kWeekly:
      return console::SnapshotClass::kWeekly;
    case SnapshotClass::kMonthly:
      return console::SnapshotClass::kMonthly;
  }
  return console::SnapshotClass::kHourly;
}

std::string snapshot_name_of(const WallTime& time) {
  return fmt::format("{:%FT%H.%M.%SZ}", std::chrono::sys_seconds(std::chrono::seconds(time.seconds)));
}

Error why_not_taken(const Error& error, const std::string& name) {
  switch (error.number()) {
    case EEXIST:
      return {EEXIST, "there is a snapshot " + name + " already"};
    case EINVAL:
      return {EINVAL, "a snapshot cannot be called " + name + ": it names a directory"};
    case EMFILE:
      return {EBUSY, fmt::format("there are {} snapshots, and there can be no more: delete some",
                                 Snapshots::kSnapshotsMax)};
    case EBUSY:
      return {EBUSY, "another snapshot is being taken"};
    case ENOSPC:
      return {EBUSY, "the disk of the metadata is full: free space on it, or delete snapshots"};
    case ETIMEDOUT:
      return {
          EAGAIN,
          "a client has not returned the memory it writes in time, or a brick is away: nothing has changed; "
          "pnfsrdma layout list and pnfsrdma brick list show which, and pnfsrdma snapshot create --force "
          "takes "
          "the memory from the client"};
    default:
      return error;
  }
}

console::TreeSnapshots SnapshotAdministration::all() const {
  console::TreeSnapshots all{.all = {}, .held_bytes = keeper_.held()};
  for (const auto& [number, snapshot] : names_.snapshots().all()) all.all.push_back(shown(snapshot));
  return all;
}

void SnapshotAdministration::add_check(console::Numbers& numbers) {
  // Memory of terabytes is freed in less.
  constexpr Milliseconds kPatience = std::chrono::minutes(10);
  const SteadyTime now = clock_.now();
  const Snapshots& snapshots = names_.snapshots();
  std::erase_if(going_, [&](const auto& one) { return snapshots.find(one.first) == nullptr; });
  std::string stuck;
  for (const auto& [number, snapshot] : snapshots.all()) {
    if (snapshot.state != SnapshotState::kGoing) continue;
    const SteadyTime since = going_.try_emplace(number, now).first->second;
    if (now - since < kPatience) continue;
    stuck += fmt::format("{}{} (for {} minutes)", stuck.empty() ? "" : ", ", snapshot.name,
                         std::chrono::duration_cast<std::chrono::minutes>(now - since).count());
  }
  if (stuck.empty()) return;
  numbers.checks.push_back(
      {.name = "snapshots",
       .status = console::HealthStatus::kWarning,
       .detail = "Deleted snapshots still hold memory: " + stuck + ".",
       .fix = "Memory of a brick that is away is freed when it is back: pnfsrdma brick list"});
}

// Two in one second are told apart.
std::string SnapshotAdministration::free_name() const {
  const std::string name = snapshot_name_of(clock_.wall_now());
  std::string free = name;
  for (int next = 2; names_.snapshots().find(free) != nullptr; ++next)
    free = fmt::format("{}-{}", name, next);
  return free;
}

void SnapshotAdministration::take(const std::string& asked, bool force, Done<console::TreeSnapshot> done) {
  const std::string name = asked.empty() ? free_name() : asked;
  const auto revoked = std::make_shared<Revoked>();
  begin(
      SnapshotClass::kNone, name,
      [this, name, revoked, done = std::move(done)](Result<SnapshotNumber> number) {
        taken(name, std::move(number), *revoked, done);
      },
      force ? noted_in(revoked, name) : nullptr);
}

// The first layout of a client is logged: it may have thousands.
SnapshotKeeper::Revoking SnapshotAdministration::noted_in(const std::shared_ptr<Revoked>& revoked,
                                                          const std::string& name) {
  return [this, revoked, name](uint64_t client, InodeId inode) {
    console::RevokedClient& noted = (*revoked)[client];
    if (noted.layouts++ > 0) return;
    noted.id = client;
    noted.name = client_name_(client);
    log_warning("snapshots", "snapshot-forced name=\"{}\" client={:#x} client_name={} first_inode={}", name,
                client, noted.name, inode);
  };
}

void SnapshotAdministration::take_for(SnapshotClass schedule, const std::string& name,
                                      Done<SnapshotNumber> done) {
  begin(schedule, name, std::move(done), nullptr);
}

void SnapshotAdministration::begin(SnapshotClass schedule, const std::string& name, Done<SnapshotNumber> done,
                                   SnapshotKeeper::Revoking revoking) {
  const auto end = [this, done = std::move(done)](Result<SnapshotNumber> number) {
    // The first one, even if there were others when it was begun.
    const auto is_ready = [](const auto& one) { return one.second.is_ready(); };
    if (number && std::ranges::count_if(names_.snapshots().all(), is_ready) == 1) update_roots();
    done(std::move(number));
  };
  keeper_.take(name, lifetime_.guard(end), schedule, std::move(revoking));
}

void SnapshotAdministration::taken(const std::string& name, Result<SnapshotNumber> number,
                                   const Revoked& revoked, const Done<console::TreeSnapshot>& done) {
  if (!number && !revoked.empty()) {
    std::string clients;
    for (const auto& [client, noted] : revoked) clients += (clients.empty() ? "" : ", ") + noted.name;
    return done(
        fail(EAGAIN, "files were being written all the time, or a brick is away, although the layouts of " +
                         clients + " have been revoked: there is no snapshot"));
  }
  if (!number) return done(std::unexpected(why_not_taken(number.error(), name)));
  const Snapshot* const snapshot = names_.snapshots().find(*number);
  if (snapshot == nullptr) return done(fail(ENOENT, "it was deleted meanwhile"));
  console::TreeSnapshot answer = shown(*snapshot);
  for (const auto& [client, noted] : revoked) answer.revoked.push_back(noted);
  done(std::move(answer));
}

void SnapshotAdministration::remove(SnapshotNumber number, Done<> done) {
  const Snapshot* const snapshot = names_.snapshots().find(number);
  if (snapshot == nullptr || !snapshot->is_ready())
    return done(fail(ENOENT, fmt::format("there is no snapshot {}", number)));
  const std::string name = snapshot->name;  // its record changes meanwhile
  if (snapshot->pinned)
    return done(
        fail(EBUSY, fmt::format("the snapshot {} is pinned: pnfsrdma snapshot unpin {}", name, name)));
  keeper_.remove(name, lifetime_.guard([this, done = std::move(done)](Result<> removed) {
    if (removed && !names_.snapshots().has_ready()) update_roots();
    done(std::move(removed));
  }));
}

void SnapshotAdministration::pin(SnapshotNumber number, bool pinned, Done<console::TreeSnapshot> done) {
  Snapshots& snapshots = names_.snapshots();
  const Snapshot* const snapshot = snapshots.find(number);
  if (snapshot == nullptr || !snapshot->is_ready())
    return done(fail(ENOENT, fmt::format("there is no snapshot {}", number)));
  if (snapshot->pinned != pinned) {
    if (const auto changed = snapshots.set_pinned(number, pinned); !changed)
      return done(std::unexpected(changed.error()));
    log_info("snapshots", "snapshot-pinned name=\"{}\" number={} pinned={}", snapshot->name, number, pinned);
  }
  KeyValueStore& store = names_.store();
  store.when_synced(store.last_namespace_sequence(),
                    [done = std::move(done), now = shown(*snapshot)] { done(now); });
}

// The list of snapshots has got, or lost, its name in each of them. A client that has looked for the name learns of it
// as it does of every other: the directory has changed.
void SnapshotAdministration::update_roots() {
  for (const InodeId root : exports_.directories()) static_cast<void>(names_.update(root, {}));
}

}  // namespace pnfsrdma::mds
