// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
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

  SnapshotAdministration(const Clock& clock, Namespace& names, const Exports& exports, SnapshotKeeper& keeper)
      : clock_(clock), names_(names), exports_(exports), keeper_(keeper) {}

  console::TreeSnapshots all() const;
  // One that is being deleted and does not go. Asked once a second.
  void add_check(console::Numbers& numbers);
  void take(const std::string& name, Done<console::TreeSnapshot> done);
  // The same for the schedule, with the errors of SnapshotKeeper::take.
  void take_for(SnapshotClass schedule, const std::string& name, Done<SnapshotNumber> done);
  // EBUSY: it is pinned.
  void remove(SnapshotNumber number, Done<> done);
  void pin(SnapshotNumber number, bool pinned, Done<console::TreeSnapshot> done);

 private:
  std::string free_name() const;
  void taken(const std::string& name, Result<SnapshotNumber> number, const Done<console::TreeSnapshot>& done);
  void update_roots();

  const Clock& clock_;
  Namespace& names_;
  const Exports& exports_;
  SnapshotKeeper& keeper_;
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
