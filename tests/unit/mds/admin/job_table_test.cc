// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/job_table.h"

#include <gtest/gtest.h>

#include "tests/doubles/manual_clock.h"

namespace pnfsrdma::mds {
namespace {

struct Jobs : ::testing::Test {
  ManualClock clock;
  std::unique_ptr<JobTable> table = std::make_unique<JobTable>(clock);
  JobTable::Events events;
  int cancels = 0;

  Result<console::Job> start(const std::string& subject = "brick") {
    return table->start(console::JobKind::kCheck, subject, "root", [this](JobTable::Events given) {
      events = std::move(given);
      return [this] { ++cancels; };
    });
  }
};

TEST_F(Jobs, TellHowFarTheyAreAndHowTheyEnded) {
  const auto job = start();
  EXPECT_EQ(job->state, console::JobState::kRunning);
  events.on_progress(0.5, "half");
  EXPECT_EQ(table->all()[0].progress, 0.5);
  events.on_progress(7, "too far");
  EXPECT_EQ(table->all()[0].progress, 1);
  events.on_end(std::string("sound"));
  EXPECT_EQ(table->all()[0].state, console::JobState::kDone);
  EXPECT_EQ(table->all()[0].message, "sound");
  EXPECT_TRUE(table->all()[0].finished.has_value());
  EXPECT_EQ(table->cancel(job->id)->state, console::JobState::kDone);
  EXPECT_EQ(cancels, 0);
}

TEST_F(Jobs, OneAtATimeWorksOnASubject) {
  ASSERT_TRUE(start());
  EXPECT_EQ(start().error().number(), EBUSY);
  EXPECT_TRUE(start("another"));
}

TEST_F(Jobs, AreCancelledOnce) {
  const auto job = start();
  EXPECT_TRUE(table->cancel(job->id));
  EXPECT_TRUE(table->cancel(job->id));
  EXPECT_EQ(cancels, 1);
  events.on_end(fail(ECANCELED, "cancelled"));
  EXPECT_EQ(table->all()[0].state, console::JobState::kCancelled);
  EXPECT_EQ(table->cancel(99).error().number(), ENOENT);
}

TEST_F(Jobs, ThatEndAtOnceOrAfterTheTableHarmNobody) {
  const auto job = table->start(console::JobKind::kCheck, "x", "root", [](JobTable::Events given) {
    given.on_end(fail(EIO, "the medium"));
    return [] {};
  });
  EXPECT_EQ(job->state, console::JobState::kFailed);
  ASSERT_TRUE(start());
  table.reset();
  events.on_progress(1, "late");
  events.on_end(std::string("late"));
}

TEST_F(Jobs, OldOnesMakeRoom) {
  for (int i = 0; i < 150; ++i) {
    ASSERT_TRUE(start());
    events.on_end(std::string("done"));
  }
  EXPECT_EQ(table->all().size(), 100u);
  EXPECT_EQ(table->all().back().id, 150u);
}

}  // namespace
}  // namespace pnfsrdma::mds
