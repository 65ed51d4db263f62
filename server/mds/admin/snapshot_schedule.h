// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "server/mds/meta/snapshots.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"

// What a schedule of snapshots asks for at a given time: neither I/O nor a clock of its own. All times are UTC.
namespace pnfsrdma::mds {

// The rarest first: when several are due, they are taken in this order.
inline constexpr std::array kSnapshotClasses{SnapshotClass::kMonthly, SnapshotClass::kWeekly,
                                             SnapshotClass::kDaily, SnapshotClass::kHourly};
// "hourly"; "" of kNone.
std::string_view to_string(SnapshotClass schedule);

// As it is set. So many of each class are kept; 0: none is taken, and those that there are stay.
struct SnapshotSchedule {
  uint32_t hourly = 0;
  uint32_t daily = 0;
  uint32_t weekly = 0;   // on Mondays
  uint32_t monthly = 0;  // on the first day
  uint32_t hour = 0;     // of the day, for all but the hourly ones
  uint32_t minute = 0;   // of the hour, for all

  bool operator==(const SnapshotSchedule&) const = default;
  uint32_t keeps(SnapshotClass schedule) const;
  bool is_on() const { return hourly + daily + weekly + monthly > 0; }
};

// All classes together may keep so many. The rest of Snapshots::kSnapshotsMax is for those of people, those that are
// pinned, and those that are being deleted.
inline constexpr uint32_t kScheduledMax = 4000;
static_assert(kScheduledMax < Snapshots::kSnapshotsMax);

// EINVAL: it keeps more than kScheduledMax, or its time is none.
Result<> check_schedule(const SnapshotSchedule& schedule);

// The hour, day, week or month that `now` is in, as the schedule cuts time: it begins when one is due.
struct SchedulePeriod {
  WallTime begin;
  WallTime end;  // when the next one begins

  bool has(const WallTime& time) const { return begin <= time && time < end; }
};
SchedulePeriod period_of(const SnapshotSchedule& schedule, SnapshotClass of, const WallTime& now);
// No period of the class is shorter.
std::chrono::seconds shortest_period(SnapshotClass of);

using AllSnapshots = std::map<SnapshotNumber, Snapshot>;

// Whether the period has none yet. However many periods before it have none, one is due.
bool is_due(const SnapshotSchedule& schedule, SnapshotClass of, const AllSnapshots& all, const WallTime& now);
// One that is above the number to keep, the oldest: by its number, so that no clock has a say. Only of those that the
// schedule took, and not of pinned ones, which do not count. Never the last.
std::optional<SnapshotNumber> surplus_of(const SnapshotSchedule& schedule, SnapshotClass of,
                                         const AllSnapshots& all);

// "hourly-2026-11-28T10-00Z": a file name on every system; the same with "-2" and so on where it is taken.
std::string scheduled_name(SnapshotClass of, const WallTime& time, const AllSnapshots& all);

}  // namespace pnfsrdma::mds
