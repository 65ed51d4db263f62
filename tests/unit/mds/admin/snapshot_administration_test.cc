// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/snapshot_administration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/unit/mds/admin/admin_world.h"

namespace pnfsrdma::mds::testing {
namespace {

TEST(SnapshotAdministration, ANameOfATimeIsAFileName) {
  EXPECT_EQ(snapshot_name_of({.seconds = 1795829400, .nanoseconds = 999'999'999}), "2026-11-28T01.30.00Z");
}

TEST(SnapshotAdministration, SaysWhyThereIsNone) {
  EXPECT_EQ(why_not_taken(Error(EEXIST, ""), "a").what(), "there is a snapshot a already");
  // 409, and 503 where it may be tried again at once.
  EXPECT_EQ(why_not_taken(Error(EMFILE, ""), "a").number(), EBUSY);
  EXPECT_EQ(why_not_taken(Error(ENOSPC, ""), "a").number(), EBUSY);
  EXPECT_EQ(why_not_taken(Error(ETIMEDOUT, ""), "a").number(), EAGAIN);
  EXPECT_EQ(why_not_taken(Error(EIO, "the medium"), "a").number(), EIO);
}

TEST(SnapshotAdministration, ShowsThemAndWarnsOfOneThatDoesNotGo) {
  AdminWorld world;
  Snapshots& snapshots = world.layouts.names->snapshots();
  const auto first = snapshots.begin("first", {.seconds = 7, .nanoseconds = 0});
  ASSERT_TRUE(first && snapshots.set_state(*first, SnapshotState::kReady));
  const auto second = snapshots.begin("second", {});
  ASSERT_TRUE(second && snapshots.set_state(*second, SnapshotState::kGoing));
  const console::TreeSnapshots all = world.administrator.snapshots();
  ASSERT_EQ(all.all.size(), 2U);
  EXPECT_EQ(all.all[0].id, *first);
  EXPECT_EQ(all.all[0].name, "first");
  EXPECT_EQ(all.all[0].created.seconds, 7);
  EXPECT_EQ(all.all[0].state, console::SnapshotState::kReady);
  EXPECT_EQ(all.all[1].state, console::SnapshotState::kDeleting);
  EXPECT_EQ(world.administrator.numbers().snapshots, 2U);

  const auto warning = [&] {
    const console::Numbers numbers = world.administrator.numbers();
    const auto check = std::ranges::find(numbers.checks, "snapshots", &console::HealthCheck::name);
    return check == numbers.checks.end() ? "" : check->detail;
  };
  EXPECT_EQ(warning(), "");
  world.layouts.clock.advance(std::chrono::minutes(11));
  EXPECT_EQ(warning(), "Deleted snapshots still hold memory: second (for 11 minutes).");
  ASSERT_TRUE(snapshots.erase(*second));
  snapshots.forget(*second);
  EXPECT_EQ(warning(), "");
}

TEST(SnapshotAdministration, TheScheduleTakesOneThatSaysSo) {
  AdminWorld world;
  world.layouts.obey_recalls();
  std::optional<Result<>> set;
  world.administrator.change_settings({{"snapshot_schedule", R"({"hourly": 2})"}},
                                      [&](Result<> answer) { set = std::move(answer); });
  world.layouts.pass(Milliseconds(5000));
  ASSERT_TRUE(set && *set);
  const console::TreeSnapshots all = world.administrator.snapshots();
  ASSERT_EQ(all.all.size(), 1U);
  EXPECT_EQ(all.all[0].name, "hourly-1970-01-01T01-00Z");
  EXPECT_EQ(all.all[0].schedule, console::SnapshotClass::kHourly);
  EXPECT_FALSE(all.all[0].pinned);
  const console::SnapshotSchedule schedule = world.administrator.snapshot_schedule();
  EXPECT_EQ(schedule.hourly, 2U);
  ASSERT_EQ(schedule.next.size(), 1U);
  EXPECT_EQ(schedule.next[0].due.seconds, 7200);
  EXPECT_EQ(world.administrator.numbers().scheduled_snapshots, 1U);
}

TEST(SnapshotAdministration, OneThatIsPinnedIsNotDeleted) {
  AdminWorld world;
  Snapshots& snapshots = world.layouts.names->snapshots();
  const auto number = snapshots.begin("kept", {});
  ASSERT_TRUE(number && snapshots.set_state(*number, SnapshotState::kReady));
  const auto pin = [&](SnapshotNumber which, bool pinned) {
    std::optional<Result<console::TreeSnapshot>> answer;
    world.administrator.pin_snapshot(which, pinned, [&](auto got) { answer = std::move(got); });
    world.layouts.pass(Milliseconds(100));
    return answer.value_or(fail(EIO, "no answer"));
  };
  const auto remove = [&] {
    std::optional<Result<>> answer;
    world.administrator.remove_snapshot(*number, [&](Result<> got) { answer = std::move(got); });
    world.layouts.pass(Milliseconds(100));
    return answer.value_or(fail(EIO, "no answer"));
  };
  EXPECT_TRUE(pin(*number, true).value().pinned);
  EXPECT_TRUE(pin(*number, true).value().pinned);  // again
  EXPECT_EQ(remove().error().number(), EBUSY);
  EXPECT_TRUE(world.administrator.snapshots().all[0].pinned);
  EXPECT_FALSE(pin(*number, false).value().pinned);
  EXPECT_TRUE(remove());
  EXPECT_EQ(pin(*number, true).error().number(), ENOENT);
}

TEST(SnapshotAdministration, OneThatIsNotThereIsNotDeleted) {
  AdminWorld world;
  int error = 0;
  world.administrator.remove_snapshot(
      7, [&](const Result<>& removed) { error = removed ? 0 : removed.error().number(); });
  EXPECT_EQ(error, ENOENT);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
