// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/snapshot_schedule.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace pnfsrdma::mds {

namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

// What the calendar can show of a clock that is wrong: up to the end of the year 2199 (in nanoseconds, as fmt has it).
sys_seconds seconds_of(const WallTime& time) {
  constexpr int64_t kLast = 7'258'118'399;
  return sys_seconds(std::chrono::seconds(std::clamp<int64_t>(time.seconds, 0, kLast)));
}

WallTime wall_of(sys_seconds time) {
  return {.seconds = time.time_since_epoch().count(), .nanoseconds = 0};
}

SchedulePeriod period(sys_seconds begin, std::chrono::seconds length) {
  return {wall_of(begin), wall_of(begin + length)};
}

sys_days first_day(const std::chrono::year_month& month) {
  return month / std::chrono::day(1);
}

}  // namespace

std::string_view to_string(SnapshotClass schedule) {
  switch (schedule) {
    case SnapshotClass::kNone:
      break;
    case SnapshotClass::kHourly:
      return "hourly";
    case SnapshotClass::kDaily:
      return "daily";
    case SnapshotClass::kWeekly:
      return "weekly";
    case SnapshotClass::kMonthly:
      return "monthly";
  }
  return "";
}

uint32_t SnapshotSchedule::keeps(SnapshotClass schedule) const {
  switch (schedule) {
    case SnapshotClass::kNone:
      break;
    case SnapshotClass::kHourly:
      return hourly;
    case SnapshotClass::kDaily:
      return daily;
    case SnapshotClass::kWeekly:
      return weekly;
    case SnapshotClass::kMonthly:
      return monthly;
  }
  return 0;
}

Result<> check_schedule(const SnapshotSchedule& schedule) {
  if (schedule.hour > 23 || schedule.minute > 59)
    return fail(EINVAL, "snapshot_schedule: there is no such time of the day");
  uint64_t all = 0;
  for (const SnapshotClass each : kSnapshotClasses) all += schedule.keeps(each);
  if (all <= kScheduledMax) return {};
  return fail(
      EINVAL,
      fmt::format("snapshot_schedule: it keeps {} snapshots, {} more than a schedule may: of the {} that a "
                  "server can have, some are left for those that people take",
                  all, all - kScheduledMax, Snapshots::kSnapshotsMax));
}

SchedulePeriod period_of(const SnapshotSchedule& schedule, SnapshotClass of, const WallTime& now) {
  const std::chrono::minutes in_hour(schedule.minute);
  const std::chrono::minutes in_day = std::chrono::hours(schedule.hour) + in_hour;
  const sys_seconds time = seconds_of(now);
  if (of == SnapshotClass::kHourly)
    return period(floor<std::chrono::hours>(time - in_hour) + in_hour, std::chrono::hours(1));
  const sys_days day = floor<days>(time - in_day);
  if (of == SnapshotClass::kWeekly)
    return period(day - (std::chrono::weekday(day) - std::chrono::Monday) + in_day, days(7));
  if (of == SnapshotClass::kMonthly) {
    const std::chrono::year_month_day date(day);
    const std::chrono::year_month month = date.year() / date.month();
    return {wall_of(first_day(month) + in_day), wall_of(first_day(month + std::chrono::months(1)) + in_day)};
  }
  return period(day + in_day, days(1));
}

std::chrono::seconds shortest_period(SnapshotClass of) {
  switch (of) {
    case SnapshotClass::kNone:
    case SnapshotClass::kHourly:
      break;
    case SnapshotClass::kDaily:
      return days(1);
    case SnapshotClass::kWeekly:
      return days(7);
    case SnapshotClass::kMonthly:
      return days(28);
  }
  return std::chrono::hours(1);
}

bool is_due(const SnapshotSchedule& schedule, SnapshotClass of, const AllSnapshots& all,
            const WallTime& now) {
  if (schedule.keeps(of) == 0) return false;
  const SchedulePeriod current = period_of(schedule, of, now);
  return std::ranges::none_of(all, [&](const auto& one) {
    return one.second.schedule == of && one.second.state != SnapshotState::kMaking &&
           current.has(one.second.created);
  });
}

std::optional<SnapshotNumber> surplus_of(const SnapshotSchedule& schedule, SnapshotClass of,
                                         const AllSnapshots& all) {
  const auto counts = [of](const auto& one) {
    return one.second.schedule == of && one.second.is_ready() && !one.second.pinned;
  };
  const uint32_t keeps = schedule.keeps(of);
  if (keeps == 0 || std::ranges::count_if(all, counts) <= keeps) return std::nullopt;
  return std::ranges::find_if(all, counts)->first;
}

std::string scheduled_name(SnapshotClass of, const WallTime& time, const AllSnapshots& all) {
  const std::string name = fmt::format("{}-{:%FT%H-%M}Z", to_string(of), seconds_of(time));
  const auto is_taken = [&](const std::string& called) {
    return std::ranges::any_of(all, [&](const auto& one) { return one.second.name == called; });
  };
  std::string free = name;
  for (int next = 2; is_taken(free); ++next) free = fmt::format("{}-{}", name, next);
  return free;
}

}  // namespace pnfsrdma::mds
