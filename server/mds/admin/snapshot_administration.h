// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "server/console/administration.h"
#include "server/mds/layout/snapshot_keeper.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/ops/exports.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// What an administrator sees of snapshots and can do with them. Control loop only; what it is made of outlives it.
class SnapshotAdministration {
 public:
  template <typename T = void>
  using Done = console::Administration::Done<T>;

  // What people call a client.
  using ClientName = std::function<std::string(uint64_t client)>;

  SnapshotAdministration(const Clock& clock, Namespace& names, const Exports& exports, SnapshotKeeper& keeper,
                         ClientName client_name)
      : clock_(clock),
        names_(names),
        exports_(exports),
        keeper_(keeper),
        client_name_(std::move(client_name)) {}

  console::TreeSnapshots all() const;
  // One that is being deleted and does not go. Asked once a second.
  void add_check(console::Numbers& numbers);
  // With `force`, who writes and does not answer loses his layouts.
  void take(const std::string& name, bool force, Done<console::TreeSnapshot> done);
  // The same for the schedule, with the errors of SnapshotKeeper::take.
  void take_for(SnapshotClass schedule, const std::string& name, Done<SnapshotNumber> done);
  // EBUSY: it is pinned.
  void remove(SnapshotNumber number, Done<> done);
  void pin(SnapshotNumber number, bool pinned, Done<console::TreeSnapshot> done);

 private:
  using Revoked = std::map<uint64_t, console::RevokedClient>;
  SnapshotKeeper::Revoking noted_in(const std::shared_ptr<Revoked>& revoked, const std::string& name);
  std::string free_name() const;
  void begin(SnapshotClass schedule, const std::string& name, Done<SnapshotNumber> done,
             SnapshotKeeper::Revoking revoking);
  void taken(const std::string& name, Result<SnapshotNumber> number, const Revoked& revoked,
             const Done<console::TreeSnapshot>& done);
  void update_roots();

  const Clock& clock_;
  Namespace& names_;
  const Exports& exports_;
  SnapshotKeeper& keeper_;
  const ClientName client_name_;
  std::map<SnapshotNumber, SteadyTime> going_;  // since when, as far as it is known
  Lifetime lifetime_;
};

// "2026-11-28T01.30.00Z": a file name on every system.
std::string snapshot_name_of(const WallTime& time);
// Of one that the schedule took.
console::SnapshotClass shown(SnapshotClass schedule);
// Why there is none of that name, in the words and errors of console::Administration.
Error why_not_taken(const Error& error, const std::string& name);

}  // namespace pnfsrdma::mds
