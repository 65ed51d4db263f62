// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/snapshot_administration.h"

#include <gtest/gtest.h>

#include <algorithm>

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

TEST(SnapshotAdministration, OneThatIsNotThereIsNotDeleted) {
  AdminWorld world;
  int error = 0;
  world.administrator.remove_snapshot(
      7, [&](const Result<>& removed) { error = removed ? 0 : removed.error().number(); });
  EXPECT_EQ(error, ENOENT);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
