// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/console/inventory.h"
#include "server/mds/admin/snapshot_schedule.h"
#include "shared/base/clock.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// Takes the snapshots that the schedule asks for, one at a time, and deletes what is surplus, one at a time and only
// behind a new one of the same class. A clock that jumps makes it take two of a class in the time of one at most.
// Control loop only.
class SnapshotScheduler {
 public:
  // Who does what it decides. Both answer once, later or from inside the call. take() fails with EBUSY while somebody
  // else takes one.
  struct Works {
    std::function<const AllSnapshots&()> all;
    using Done = std::function<void(Result<>)>;
    std::function<void(const std::string& name, SnapshotClass schedule, Done done)> take;
    std::function<void(SnapshotNumber number, Done done)> remove;
  };
  // Nothing is due before set().
  SnapshotScheduler(EventLoop& loop, const Clock& clock, Works works);
  ~SnapshotScheduler();
  SnapshotScheduler(const SnapshotScheduler&) = delete;
  SnapshotScheduler& operator=(const SnapshotScheduler&) = delete;

  // In force from now on; the first look is after `patience`.
  void set(const SnapshotSchedule& schedule, Milliseconds patience = Milliseconds(0));

  const SnapshotSchedule& schedule() const { return schedule_; }

  // What is set, when which class is due next, and the last failure of this run.
  console::SnapshotSchedule view() const;
  // Counters, and a warning while it does not succeed: at the second try in vain, or after an hour.
  void add_to(console::Numbers& numbers) const;

 private:
  // What this run has taken of a class: a person may have deleted it, and the clock may be wrong.
  struct TakenOfClass {
    WallTime last;
    std::optional<SteadyTime> newest;  // since the schedule was set
    std::optional<SteadyTime> before;  // the one before that
  };

  void wake(Milliseconds delay);
  void look();
  std::optional<SnapshotClass> first_due();
  bool wants(SnapshotClass of, const WallTime& now) const;
  bool is_too_soon(SnapshotClass of) const;
  void take(SnapshotClass of);
  void taken(SnapshotClass of, const WallTime& time);
  void failed(SnapshotClass of, const std::string& name, const WallTime& time, const Error& error);
  bool delete_surplus();
  Milliseconds until_next_look() const;

  EventLoop& loop_;
  const Clock& clock_;
  const Works works_;
  SnapshotSchedule schedule_;
  EventLoop::TimerId timer_ = 0;
  bool working_ = false;              // taking or deleting one
  std::set<SnapshotClass> refilled_;  // have got a new one: what is surplus may go
  std::map<SnapshotClass, TakenOfClass> taken_;
  bool held_back_ = false;  // a line in the log says so
  SteadyTime not_before_;
  std::optional<SteadyTime> due_since_;  // as far as this run knows
  std::optional<console::SnapshotSchedule::Failure> failure_;
  uint32_t tries_ = 0;  // in vain, in a row
  uint64_t taken_count_ = 0;
  uint64_t failures_ = 0;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
