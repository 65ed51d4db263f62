// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/snapshot_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "tests/unit/mds/admin/schedule_times.h"

namespace pnfsrdma::mds::testing {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// A wall clock that may be set, beside the steady one.
class TwoClocks final : public Clock {
 public:
  SteadyTime now() const override { return SteadyTime(passed_); }
  WallTime wall_now() const override {
    return {wall_.seconds + std::chrono::duration_cast<seconds>(passed_).count(), 0};
  }
  void pass(seconds time) { passed_ += time; }
  void jump(seconds by) { wall_.seconds += by.count(); }

 private:
  std::chrono::nanoseconds passed_{0};
  WallTime wall_ = at("2026-11-28T10:00");
};

class Scheduler : public ::testing::Test {
 protected:
  Scheduler() { start({}); }

  // A new run of the server, with the snapshots that there are.
  void start(const SnapshotSchedule& schedule) {
    scheduler_.reset();
    scheduler_ = std::make_unique<SnapshotScheduler>(
        loop_, clock_,
        SnapshotScheduler::Works{
            .all = [this]() -> const AllSnapshots& { return all_; },
            .take =
                [this](const std::string& name, SnapshotClass schedule, const auto& done) {
                  ++tries_;
                  if (error_ != 0) return done(fail(error_, "the test's"));
                  const SnapshotNumber number = ++last_;
                  all_[number] = {.number = number,
                                  .name = name,
                                  .created = clock_.wall_now(),
                                  .state = SnapshotState::kReady,
                                  .schedule = schedule};
                  done({});
                },
            .remove =
                [this](SnapshotNumber number, const auto& done) {
                  deleted_.push_back(number);
                  if (remove_error_ != 0) return done(fail(remove_error_, "the test's"));
                  all_.erase(number);
                  done({});
                }});
    scheduler_->set(schedule);
  }
  void pass(seconds time, seconds step = seconds(10)) {
    for (seconds passed(0); passed < time; passed += step) {
      loop_.run_once(Milliseconds(0));
      clock_.pass(step);
    }
    loop_.run_once(Milliseconds(0));
  }
  size_t count(SnapshotClass of) const {
    return static_cast<size_t>(
        std::ranges::count_if(all_, [of](const auto& one) { return one.second.schedule == of; }));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [number, snapshot] : all_) names.push_back(snapshot.name);
    return names;
  }
  console::Numbers numbers() const {
    console::Numbers numbers;
    scheduler_->add_to(numbers);
    return numbers;
  }
  std::string warning() const {
    const console::Numbers now = numbers();
    return now.checks.empty() ? "" : now.checks.front().detail;
  }

  TwoClocks clock_;
  EventLoop loop_{clock_};
  AllSnapshots all_;
  SnapshotNumber last_ = 0;
  int error_ = 0;
  int remove_error_ = 0;
  size_t tries_ = 0;
  std::vector<SnapshotNumber> deleted_;
  std::unique_ptr<SnapshotScheduler> scheduler_;
};

TEST_F(Scheduler, TakesNothingWhileItIsOff) {
  pass(days(2), minutes(10));
  EXPECT_EQ(tries_, 0U);
  EXPECT_TRUE(scheduler_->view().next.empty());
}

TEST_F(Scheduler, TakesOneOfEachClassAtOnceAndThenAtItsTime) {
  scheduler_->set({.hourly = 24, .daily = 7, .weekly = 4, .monthly = 12});
  pass(minutes(1));
  EXPECT_EQ(names(), (std::vector<std::string>{"monthly-2026-11-28T10-00Z", "weekly-2026-11-28T10-00Z",
                                               "daily-2026-11-28T10-00Z", "hourly-2026-11-28T10-00Z"}));
  pass(minutes(58));
  EXPECT_EQ(all_.size(), 4U);
  pass(minutes(1) + seconds(10));
  EXPECT_EQ(names().back(), "hourly-2026-11-28T11-00Z");
  EXPECT_EQ(all_.size(), 5U);
  pass(days(3));
  EXPECT_EQ(count(SnapshotClass::kHourly), 24U);
  EXPECT_EQ(count(SnapshotClass::kDaily), 4U);
  EXPECT_EQ(count(SnapshotClass::kWeekly), 2U);  // Monday was the day before
  EXPECT_EQ(count(SnapshotClass::kMonthly), 2U);
  EXPECT_EQ(tries_, 74U + 4 + 2 + 2);
  EXPECT_EQ(numbers().scheduled_snapshots, tries_);
  EXPECT_EQ(warning(), "");
}

TEST_F(Scheduler, SaysWhenTheNextAreDue) {
  scheduler_->set({.hourly = 24, .weekly = 4, .minute = 15});
  ASSERT_EQ(scheduler_->view().next.size(), 2U);
  EXPECT_EQ(scheduler_->view().next[0].schedule, console::SnapshotClass::kHourly);
  EXPECT_EQ(scheduler_->view().next[0].due, at("2026-11-28T09:15"));  // overdue
  pass(minutes(1));
  EXPECT_EQ(scheduler_->view().next[0].due, at("2026-11-28T10:15"));
  EXPECT_EQ(scheduler_->view().next[1].due, at("2026-11-30T00:15"));
}

TEST_F(Scheduler, WhatWasMissedWhileTheServerWasDownIsMadeOnce) {
  for (SnapshotNumber number = 1; number <= 3; ++number)
    all_[number] = snapshot_of(number, SnapshotClass::kHourly, "2026-11-20T10:00");
  last_ = 3;
  start({.hourly = 24});
  pass(minutes(59));
  EXPECT_EQ(tries_, 1U);
  start({.hourly = 24});  // and a restart makes none
  pass(seconds(30));
  EXPECT_EQ(tries_, 1U);
}

TEST_F(Scheduler, DeletesWhatIsSurplusBehindANewOneAndOnlyItsOwn) {
  all_[1] = snapshot_of(1, SnapshotClass::kNone, "2020-01-01T00:00");
  all_[1].name = "hourly-2020-01-01T00-00Z";
  all_[2] = snapshot_of(2, SnapshotClass::kHourly, "2020-01-01T00:00");
  all_[2].pinned = true;
  for (SnapshotNumber number = 3; number <= 10; ++number)
    all_[number] = snapshot_of(number, SnapshotClass::kHourly, "2026-11-28T09:00");
  all_[11] = snapshot_of(11, SnapshotClass::kHourly, "2026-11-28T10:00");
  all_[12] = snapshot_of(12, SnapshotClass::kDaily, "2026-11-27T00:00");
  last_ = 12;
  start({.hourly = 3});
  pass(minutes(59));
  EXPECT_TRUE(deleted_.empty());  // nothing is due
  pass(minutes(1), seconds(1));
  pass(seconds(11), seconds(1));
  EXPECT_EQ(tries_, 1U);
  EXPECT_LT(deleted_.size(), 7U);  // one at a time
  pass(minutes(1), seconds(1));
  EXPECT_EQ(deleted_, (std::vector<SnapshotNumber>{3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(count(SnapshotClass::kHourly), 4U);  // with the one that is pinned
}

TEST_F(Scheduler, WhatCannotBeDeletedIsTriedBehindTheNextOne) {
  for (SnapshotNumber number = 1; number <= 3; ++number)
    all_[number] = snapshot_of(number, SnapshotClass::kHourly, "2026-11-28T08:00");
  last_ = 3;
  remove_error_ = EIO;
  start({.hourly = 3});
  pass(minutes(59));
  EXPECT_EQ(deleted_, std::vector<SnapshotNumber>{1});
  remove_error_ = 0;
  pass(minutes(2));
  EXPECT_EQ(deleted_, (std::vector<SnapshotNumber>{1, 1, 2}));
}

TEST_F(Scheduler, WhileNoneCanBeTakenNoneIsDeleted) {
  for (SnapshotNumber number = 1; number <= 5; ++number)
    all_[number] = snapshot_of(number, SnapshotClass::kHourly, "2026-11-28T08:00");
  last_ = 5;
  error_ = ETIMEDOUT;
  start({.hourly = 2});
  pass(hours(24));
  EXPECT_EQ(all_.size(), 5U);
  EXPECT_TRUE(deleted_.empty());
  // Behind 0.5, 1, 2, 4, 8 minutes, then every ten.
  EXPECT_GT(tries_, 140U);
  EXPECT_LT(tries_, 150U);
  EXPECT_EQ(numbers().scheduled_snapshot_failures, tries_);
  error_ = 0;
  pass(minutes(11));
  EXPECT_EQ(deleted_, (std::vector<SnapshotNumber>{1, 2, 3, 4}));
  EXPECT_EQ(count(SnapshotClass::kHourly), 2U);
}

TEST_F(Scheduler, ASecondTryInVainIsAWarningUntilOneIsTaken) {
  error_ = ETIMEDOUT;
  scheduler_->set({.hourly = 2});
  pass(seconds(10));
  EXPECT_EQ(tries_, 1U);
  EXPECT_EQ(warning(), "");
  pass(seconds(40));
  EXPECT_EQ(tries_, 2U);
  EXPECT_EQ(
      warning(),
      "A scheduled snapshot has been due for 0 minutes; 2 tries failed, the last because a client has not "
      "returned the memory it writes in time, or a brick is away: nothing has changed; pnfsrdma layout list "
      "and pnfsrdma brick list show which, and pnfsrdma snapshot create --force takes the memory from the "
      "client.");
  EXPECT_GE(numbers().snapshot_overdue_seconds, 40U);
  EXPECT_EQ(scheduler_->view().tries_in_vain, 2U);
  error_ = 0;
  pass(minutes(2));
  EXPECT_EQ(warning(), "");
  EXPECT_EQ(numbers().snapshot_overdue_seconds, 0U);
  EXPECT_EQ(scheduler_->view().tries_in_vain, 0U);
  ASSERT_TRUE(scheduler_->view().failure);  // the last one is shown still
  EXPECT_EQ(scheduler_->view().failure->time.seconds, at("2026-11-28T10:00").seconds + 30);
}

TEST_F(Scheduler, WaitsForAPersonsSnapshot) {
  error_ = EBUSY;
  scheduler_->set({.hourly = 2});
  pass(seconds(20));
  EXPECT_GT(tries_, 1U);
  EXPECT_EQ(numbers().scheduled_snapshot_failures, 0U);
  error_ = 0;
  pass(seconds(10));
  EXPECT_EQ(count(SnapshotClass::kHourly), 1U);
  error_ = EBUSY;  // and says so when that takes no end
  pass(hours(2) + minutes(10));
  EXPECT_EQ(warning(), "A scheduled snapshot has been due for 70 minutes.");
}

TEST_F(Scheduler, OneThatAPersonDeletesIsNotMadeAgain) {
  scheduler_->set({.hourly = 2});
  pass(seconds(30));
  all_.clear();
  pass(minutes(50));
  EXPECT_EQ(tries_, 1U);
  scheduler_->set({.hourly = 3});
  pass(minutes(5));
  EXPECT_EQ(tries_, 1U);
  pass(minutes(10));
  EXPECT_EQ(tries_, 2U);
}

TEST_F(Scheduler, AChangeCountsAtOnce) {
  scheduler_->set({.hourly = 2});
  pass(minutes(5));
  scheduler_->set({});
  pass(hours(5));
  EXPECT_EQ(tries_, 1U);
  for (const uint32_t minute : {5U, 10U, 15U}) {  // 15:05 and so on
    scheduler_->set({.hourly = 2, .minute = minute});
    pass(minutes(5));
  }
  EXPECT_EQ(tries_, 4U);
}

TEST_F(Scheduler, AClockThatJumpsForwardMakesOneOfEachClass) {
  scheduler_->set({.hourly = 24, .daily = 7, .weekly = 4, .monthly = 12});
  pass(hours(12));
  const size_t before = all_.size();
  clock_.jump(days(3650));
  pass(minutes(50));
  EXPECT_EQ(all_.size(), before + 4);
  EXPECT_TRUE(deleted_.empty());
}

TEST_F(Scheduler, AClockThatJumpsBackTakesThemAsBefore) {
  scheduler_->set({.hourly = 3});
  pass(hours(5));
  clock_.jump(-days(7));
  pass(hours(5) + minutes(1));
  EXPECT_EQ(count(SnapshotClass::kHourly), 3U);
  EXPECT_EQ(tries_, 12U);
  EXPECT_EQ(names().back(), "hourly-2026-11-21T20-00Z");
}

TEST_F(Scheduler, AClockThatJumpsAllTheTimeMakesTwoInAPeriodAtMost) {
  scheduler_->set({.hourly = 24, .daily = 7, .weekly = 4, .monthly = 12});
  pass(days(2));
  const size_t deleted = deleted_.size();
  const size_t tries = tries_;
  for (int i = 0; i < 24 * 60; ++i) {
    clock_.jump(i % 2 == 0 ? -days(40 * (i % 60)) : days(55 * (i % 60)));
    pass(minutes(1));
  }
  pass(minutes(2));
  EXPECT_LE(tries_ - tries, 2U * (24 + 1 + 1 + 1));
  EXPECT_LE(deleted_.size() - deleted, tries_ - tries);
  EXPECT_EQ(count(SnapshotClass::kHourly), 24U);
  EXPECT_GE(count(SnapshotClass::kDaily), 3U);
}

TEST_F(Scheduler, EndsInPeace) {
  scheduler_->set({.hourly = 2});
  scheduler_.reset();
  pass(minutes(2));
  EXPECT_EQ(tries_, 0U);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
