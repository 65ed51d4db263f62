// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/snapshot_schedule.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/mds/admin/schedule_times.h"

namespace pnfsrdma::mds::testing {
namespace {

constexpr SnapshotSchedule kAll{
    .hourly = 24, .daily = 7, .weekly = 4, .monthly = 12, .hour = 2, .minute = 30};

void expect_period(SnapshotClass of, const std::string& now, const std::string& begin,
                   const std::string& end) {
  const SchedulePeriod period = period_of(kAll, of, at(now));
  EXPECT_EQ(period.begin, at(begin)) << to_string(of) << " " << now;
  EXPECT_EQ(period.end, at(end)) << to_string(of) << " " << now;
}

TEST(SnapshotSchedule, CutsTimeByTheCalendarInUtc) {
  expect_period(SnapshotClass::kHourly, "2026-11-28T10:29", "2026-11-28T09:30", "2026-11-28T10:30");
  expect_period(SnapshotClass::kHourly, "2026-11-28T10:30", "2026-11-28T10:30", "2026-11-28T11:30");
  expect_period(SnapshotClass::kDaily, "2026-11-28T02:29", "2026-11-27T02:30", "2026-11-28T02:30");
  expect_period(SnapshotClass::kDaily, "2026-11-28T02:30", "2026-11-28T02:30", "2026-11-29T02:30");
  expect_period(SnapshotClass::kWeekly, "2026-11-28T10:00", "2026-11-23T02:30",
                "2026-11-30T02:30");  // a Saturday
  expect_period(SnapshotClass::kWeekly, "2026-11-30T02:29", "2026-11-23T02:30", "2026-11-30T02:30");
  expect_period(SnapshotClass::kWeekly, "2026-11-30T02:30", "2026-11-30T02:30", "2026-12-07T02:30");
  expect_period(SnapshotClass::kMonthly, "2026-12-31T23:59", "2026-12-01T02:30", "2027-01-01T02:30");
  expect_period(SnapshotClass::kMonthly, "2028-03-01T02:29", "2028-02-01T02:30", "2028-03-01T02:30");
}

TEST(SnapshotSchedule, NoPeriodIsShorterThanItSays) {
  for (const SnapshotClass of : kSnapshotClasses) {
    for (WallTime now = at("2027-01-01T00:00"); now < at("2029-01-01T00:00"); now.seconds += 3600) {
      const SchedulePeriod period = period_of(kAll, of, now);
      ASSERT_TRUE(period.has(now));
      ASSERT_GE(period.end.seconds - period.begin.seconds, shortest_period(of).count());
    }
  }
}

TEST(SnapshotSchedule, AClockThatIsFarOffIsNoHarm) {
  for (const int64_t seconds : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    for (const SnapshotClass of : kSnapshotClasses) {
      const SchedulePeriod period = period_of(kAll, of, {.seconds = seconds, .nanoseconds = 0});
      EXPECT_LT(period.begin, period.end);
      EXPECT_FALSE(scheduled_name(of, {.seconds = seconds, .nanoseconds = 0}, {}).empty());
    }
  }
}

TEST(SnapshotSchedule, OneIsDueInAPeriodHoweverManyWereMissed) {
  AllSnapshots all;
  const auto due = [&](const std::string& now) { return is_due(kAll, SnapshotClass::kHourly, all, at(now)); };
  EXPECT_TRUE(due("2026-11-28T10:00"));
  all[1] = snapshot_of(1, SnapshotClass::kHourly, "2026-11-25T09:30");
  EXPECT_TRUE(due("2026-11-28T10:00"));
  all[2] = snapshot_of(2, SnapshotClass::kHourly, "2026-11-28T10:00");
  EXPECT_FALSE(due("2026-11-28T10:00"));
  EXPECT_FALSE(due("2026-11-28T10:29"));
  EXPECT_FALSE(due("2026-11-28T09:31"));  // the clock went back a little
  EXPECT_TRUE(due("2026-11-28T10:30"));
  EXPECT_TRUE(due("2026-11-27T10:00"));  // a day: there are none of that time
  EXPECT_FALSE(is_due({.daily = 1}, SnapshotClass::kHourly, {}, at("2026-11-28T10:00")));
}

TEST(SnapshotSchedule, OnlyItsOwnOfThatClassCount) {
  AllSnapshots all;
  all[1] = snapshot_of(1, SnapshotClass::kNone, "2026-11-28T10:00");
  all[1].name = "hourly-2026-11-28T10-00Z";
  all[2] = snapshot_of(2, SnapshotClass::kDaily, "2026-11-28T10:00");
  EXPECT_TRUE(is_due(kAll, SnapshotClass::kHourly, all, at("2026-11-28T10:00")));
  EXPECT_FALSE(surplus_of({.hourly = 1}, SnapshotClass::kHourly, all));
}

TEST(SnapshotSchedule, TheOldestByItsNumberIsSurplus) {
  AllSnapshots all;
  all[1] = snapshot_of(1, SnapshotClass::kHourly, "2036-11-28T10:00");  // the clock was wrong
  for (SnapshotNumber number = 2; number <= 6; ++number)
    all[number] = snapshot_of(number, SnapshotClass::kHourly, "2026-11-28T10:00");
  EXPECT_EQ(surplus_of({.hourly = 3}, SnapshotClass::kHourly, all), 1U);
  all[1].pinned = true;
  EXPECT_EQ(surplus_of({.hourly = 3}, SnapshotClass::kHourly, all), 2U);
  all[2].state = SnapshotState::kGoing;
  EXPECT_EQ(surplus_of({.hourly = 3}, SnapshotClass::kHourly, all), 3U);
  EXPECT_EQ(surplus_of({.hourly = 4}, SnapshotClass::kHourly, all), std::nullopt);
  EXPECT_EQ(surplus_of({.daily = 1}, SnapshotClass::kHourly, all), std::nullopt);  // the class is off
}

TEST(SnapshotSchedule, ANameIsOfItsTimeAndFree) {
  const WallTime time = at("2026-11-28T10:00");
  EXPECT_EQ(scheduled_name(SnapshotClass::kHourly, time, {}), "hourly-2026-11-28T10-00Z");
  EXPECT_EQ(scheduled_name(SnapshotClass::kMonthly, time, {}), "monthly-2026-11-28T10-00Z");
  AllSnapshots all;
  all[1].name = "hourly-2026-11-28T10-00Z";
  all[2].name = "hourly-2026-11-28T10-00Z-2";
  EXPECT_EQ(scheduled_name(SnapshotClass::kHourly, time, all), "hourly-2026-11-28T10-00Z-3");
}

TEST(SnapshotSchedule, KeepsNoMoreThanAServerCanHave) {
  EXPECT_TRUE(check_schedule({}));
  EXPECT_TRUE(check_schedule(kAll));
  EXPECT_TRUE(check_schedule({.hourly = 1000, .daily = 1000, .weekly = 1000, .monthly = 1000}));
  const auto refused = check_schedule({.hourly = 4000, .monthly = 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EINVAL);
  EXPECT_EQ(
      refused.error().what(),
      "snapshot_schedule: it keeps 4001 snapshots, 1 more than a schedule may: of the 4096 that a server can "
      "have, some are left for those that people take");
  EXPECT_FALSE(check_schedule({.hourly = UINT32_MAX, .daily = UINT32_MAX}));
  EXPECT_FALSE(check_schedule({.hour = 24}));
  EXPECT_FALSE(check_schedule({.minute = 60}));
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
