// SPDX-License-Identifier: Apache-2.0
#include "server/console/alert_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "tests/doubles/manual_clock.h"

namespace pnfsrdma::console {
namespace {

using std::chrono::seconds;

AlertCondition holds(const char* rule, const std::string& subject = "b1") {
  return {.rule = find_alert_rule(rule), .subject = subject, .summary = "s", .description = "d"};
}
AlertCondition unknown(const char* rule) {
  AlertCondition condition = holds(rule);
  condition.known = false;
  return condition;
}
constexpr const char* kAway = "PnfsrdmaBrickAway";               // a minute
constexpr const char* kSoon = "PnfsrdmaCertificateExpiresSoon";  // at once

TEST(AlertTable, FiresWhenItsRuleWasTrueForLongEnough) {
  ManualClock clock;
  AlertTable table(clock);
  EXPECT_TRUE(table.update({holds(kAway)}).empty());
  clock.advance(seconds(59));
  EXPECT_TRUE(table.update({holds(kAway)}).empty());
  EXPECT_EQ(table.all().front().state, AlertState::kPending);
  clock.advance(seconds(1));
  const auto changed = table.update({holds(kAway)});
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed.front().state, AlertState::kFiring);
  EXPECT_EQ(changed.front().fired->seconds - changed.front().since.seconds, 60);
  EXPECT_TRUE(table.update({holds(kAway)}).empty());
}

TEST(AlertTable, WhatEndsBeforeItFiresWasNothing) {
  ManualClock clock;
  AlertTable table(clock);
  table.update({holds(kAway)});
  clock.advance(seconds(40));
  EXPECT_TRUE(table.update({}).empty());
  EXPECT_TRUE(table.all().empty());
  table.update({holds(kAway)});
  clock.advance(seconds(40));
  EXPECT_TRUE(table.update({holds(kAway)}).empty());
}

TEST(AlertTable, WhatComesAgainIsAnotherAlertThatNobodyHasAcknowledged) {
  ManualClock clock;
  AlertTable table(clock);
  table.update({holds(kSoon)});
  ASSERT_TRUE(
      table.acknowledge(1, Acknowledgement{.user = "eve", .comment = "seen", .time = {}, .until = {}}));
  EXPECT_FALSE(shouts(*table.find(1), clock.wall_now()));
  EXPECT_EQ(table.update({}).front().state, AlertState::kResolved);
  EXPECT_EQ(table.find(1)->acknowledged->comment, "seen");
  table.update({holds(kSoon)});
  ASSERT_EQ(table.all().size(), 2u);
  EXPECT_EQ(table.all().front().id, 2u);
  EXPECT_TRUE(shouts(*table.find(2), clock.wall_now()));
}

TEST(AlertTable, WhatCannotBeSaidChangesNothing) {
  ManualClock clock;
  AlertTable table(clock);
  EXPECT_TRUE(table.update({unknown(kSoon)}).empty());
  EXPECT_TRUE(table.all().empty());
  table.update({holds(kSoon)});
  EXPECT_TRUE(table.update({unknown(kSoon)}).empty());
  EXPECT_EQ(table.find(1)->state, AlertState::kFiring);
}

TEST(AlertTable, AnAcknowledgementMayEnd) {
  ManualClock clock;
  AlertTable table(clock);
  table.update({holds(kSoon)});
  const WallTime until{.seconds = clock.wall_now().seconds + 60};
  ASSERT_TRUE(
      table.acknowledge(1, Acknowledgement{.user = "eve", .comment = {}, .time = {}, .until = until}));
  EXPECT_FALSE(shouts(*table.find(1), clock.wall_now()));
  clock.advance(seconds(61));
  EXPECT_TRUE(shouts(*table.find(1), clock.wall_now()));
  ASSERT_TRUE(table.acknowledge(1, std::nullopt));
  EXPECT_FALSE(table.find(1)->acknowledged.has_value());
}

TEST(AlertTable, OnlyWhatFiresIsAcknowledged) {
  ManualClock clock;
  AlertTable table(clock);
  const Acknowledgement seen{.user = "eve", .comment = {}, .time = {}, .until = {}};
  EXPECT_EQ(table.acknowledge(1, seen).error().number(), ENOENT);
  table.update({holds(kAway), holds(kSoon)});
  EXPECT_EQ(table.acknowledge(1, seen).error().number(), EBUSY);
  table.update({});
  EXPECT_EQ(table.acknowledge(2, seen).error().number(), EBUSY);
}

TEST(AlertTable, SurvivesARestartButForWhatIsPending) {
  ManualClock clock;
  AlertTable before(clock);
  before.update({holds(kSoon, "a"), holds(kSoon, "b")});
  before.update({holds(kSoon, "a"), holds(kAway)});
  ASSERT_TRUE(before.acknowledge(
      1, Acknowledgement{.user = "eve", .comment = "c", .time = {}, .until = WallTime{5}}));
  AlertTable after(clock);
  ASSERT_TRUE(after.load(before.to_json()));
  ASSERT_EQ(after.all().size(), 2u);
  EXPECT_EQ(after.find(1)->acknowledged, before.find(1)->acknowledged);
  EXPECT_EQ(after.find(2)->state, AlertState::kResolved);
  // It goes on where it was: nothing fires anew.
  EXPECT_TRUE(after.update({holds(kSoon, "a")}).empty());
  EXPECT_EQ(after.update({}).front().id, 1u);
  after.update({holds(kSoon, "c")});
  EXPECT_GT(after.all().front().id, 3u);
}

TEST(AlertTable, WhatIsNotItsOwnIsRefused) {
  ManualClock clock;
  AlertTable table(clock);
  table.update({holds(kSoon)});
  Json strange = table.to_json();
  strange["version"] = 2;
  EXPECT_EQ(table.load(strange).error().number(), EUCLEAN);
  strange = table.to_json();
  strange["alerts"][0].erase("rule");
  EXPECT_FALSE(table.load(strange));
  EXPECT_FALSE(table.load(Json::parse("[]")));
  EXPECT_FALSE(table.load(Json::parse(R"({"version":1,"alerts":{},"next":1})")));
  EXPECT_FALSE(table.load(Json::parse(R"({"version":1,"alerts":["x"],"next":1})")));
  EXPECT_EQ(table.all().size(), 1u);
}

TEST(AlertTable, ForgetsWhatWasResolvedAWeekAgoAndNeverKeepsMoreThanItsLimit) {
  ManualClock clock;
  AlertTable table(clock);
  for (size_t i = 0; i < AlertTable::kResolvedMax + 5; ++i) {
    table.update({holds(kSoon)});
    table.update({});
  }
  EXPECT_EQ(table.all().size(), AlertTable::kResolvedMax);
  EXPECT_EQ(table.all().back().id, 6u);
  clock.advance(AlertTable::kKept + seconds(2));
  table.update({});
  EXPECT_TRUE(table.all().empty());
}

// Against the plainest of models: for each rule since when it has been true without a break.
TEST(AlertTable, DoesWhatAModelOfItDoes) {
  const std::vector<const char*> rules{kAway, kSoon, "PnfsrdmaBrickNearlyFull"};
  struct Model {
    std::optional<seconds> since;
    bool fires = false;
    bool acknowledged = false;
  };
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    ManualClock clock;
    auto table = std::make_unique<AlertTable>(clock);
    std::map<std::string, Model> models;
    seconds now{0};
    for (int step = 0; step < 200; ++step) {
      const seconds passed(random() % 90);
      clock.advance(passed);
      now += passed;
      std::vector<AlertCondition> conditions;
      size_t changes = 0;
      for (const char* rule : rules) {
        Model& model = models[rule];
        const unsigned choice = random() % 10;
        if (choice == 0) {
          conditions.push_back(unknown(rule));
        } else if (choice < 8) {
          conditions.push_back(holds(rule));
          if (!model.since) model.since = now;
          const bool fires = now - *model.since >= find_alert_rule(rule)->hold;
          changes += fires && !model.fires ? 1 : 0;
          model.fires = model.fires || fires;
        } else {
          changes += model.fires ? 1 : 0;
          model = Model{};
        }
      }
      ASSERT_EQ(table->update(conditions).size(), changes) << seed << " " << step;
      for (const Alert& alert : table->all()) {
        if (alert.state == AlertState::kResolved) continue;
        Model& model = models[alert.rule];
        ASSERT_EQ(alert.state == AlertState::kFiring, model.fires) << seed << " " << step;
        ASSERT_EQ(shouts(alert, clock.wall_now()), model.fires && !model.acknowledged);
        if (random() % 4 != 0) continue;
        const bool done =
            table->acknowledge(alert.id, Acknowledgement{.user = "u", .comment = {}, .time = {}, .until = {}})
                .has_value();
        ASSERT_EQ(done, model.fires);
        model.acknowledged = model.acknowledged || done;
      }
      if (random() % 20 != 0) continue;
      auto restarted = std::make_unique<AlertTable>(clock);
      ASSERT_TRUE(restarted->load(table->to_json()));
      table = std::move(restarted);
      for (auto& [rule, model] : models) {
        if (!model.fires) model = Model{};
      }
    }
  }
}

}  // namespace
}  // namespace pnfsrdma::console
