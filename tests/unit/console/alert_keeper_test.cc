// SPDX-License-Identifier: Apache-2.0
#include "server/console/alert_keeper.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "tests/doubles/manual_clock.h"
#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console::testing {
namespace {

// A keeper that is started again and again on one folder.
class Keeper : public ::testing::Test {
 protected:
  std::unique_ptr<AlertKeeper> started() {
    return std::make_unique<AlertKeeper>(
        AlertKeeper::Parts{.clock = clock,
                           .directory = folder.path(),
                           .server = "server1",
                           .numbers = [this]() -> Result<std::shared_ptr<const Numbers>> {
                             if (busy) return fail(EAGAIN, "busy");
                             return std::make_shared<const Numbers>();
                           },
                           .certificate_seconds_left = [this] { return std::optional(left); },
                           .tell = [this](const Alert& alert) { told.push_back(alert); }});
  }
  Acknowledgement seen() const { return {.user = "eve", .comment = "seen", .time = {}, .until = {}}; }

  TemporaryFolder folder;
  ManualClock clock;
  double left = 3600;
  bool busy = false;
  std::vector<Alert> told;
};

TEST_F(Keeper, TellsWhatFiresAndWhatIsResolved) {
  const auto keeper = started();
  keeper->evaluate();
  keeper->evaluate();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].rule, "PnfsrdmaCertificateExpiresSoon");
  EXPECT_EQ(told[0].summary, "The certificate of the console of server1 expires in 1h 0m");
  left = 1e9;
  keeper->evaluate();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[1].state, AlertState::kResolved);
}

TEST_F(Keeper, WhileTheServerIsBusyEverythingStaysAsItIs) {
  const auto keeper = started();
  keeper->evaluate();
  busy = true;
  left = 1e9;
  keeper->evaluate();
  EXPECT_EQ(keeper->find(1)->state, AlertState::kFiring);
}

TEST_F(Keeper, AnAcknowledgementSurvivesARestartAndWhatShoutsIsToldAgain) {
  auto keeper = started();
  keeper->evaluate();
  keeper.reset();
  told.clear();
  keeper = started();
  EXPECT_EQ(told.size(), 1u);
  ASSERT_TRUE(keeper->acknowledge(1, seen()));
  keeper.reset();
  told.clear();
  keeper = started();
  EXPECT_TRUE(told.empty());
  ASSERT_TRUE(keeper->find(1).has_value());
  EXPECT_EQ(keeper->find(1)->acknowledged->comment, "seen");
  keeper->evaluate();
  EXPECT_EQ(keeper->all().size(), 1u);
}

TEST_F(Keeper, AnAcknowledgementThatCannotBeKeptIsNone) {
  const auto keeper = started();
  keeper->evaluate();
  std::filesystem::remove_all(folder.path());
  EXPECT_FALSE(keeper->acknowledge(1, seen()));
  EXPECT_FALSE(keeper->find(1)->acknowledged.has_value());
  std::filesystem::create_directories(folder.path());
  EXPECT_TRUE(keeper->acknowledge(1, seen()));
}

TEST_F(Keeper, AFileThatCannotBeReadIsPutAside) {
  std::ofstream(folder / "alerts.json") << "{\"version\":";
  const auto keeper = started();
  EXPECT_TRUE(keeper->all().empty());
  EXPECT_TRUE(std::filesystem::exists(folder / "alerts.json.unreadable"));
  keeper->evaluate();
  EXPECT_EQ(keeper->all().size(), 1u);
}

TEST_F(Keeper, ManyStartsInAnHourAreAnAlert) {
  left = 1e9;
  for (int i = 0; i < 3; ++i) {
    started()->evaluate();
    EXPECT_TRUE(told.empty());
  }
  const auto keeper = started();
  keeper->evaluate();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].summary, "The MDS server1 has started 4 times in an hour");
  clock.advance(std::chrono::seconds(3601));
  keeper->evaluate();
  EXPECT_EQ(told.back().state, AlertState::kResolved);
}

TEST_F(Keeper, EvaluatesByItselfAndEndsAtOnce) {
  const auto keeper = started();
  keeper->start();
  const auto until = steady_now() + std::chrono::seconds(30);
  while (keeper->all().empty() && steady_now() < until) yield_thread();
  EXPECT_EQ(keeper->all().size(), 1u);
}

}  // namespace
}  // namespace pnfsrdma::console::testing
