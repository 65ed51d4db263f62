// SPDX-License-Identifier: Apache-2.0
#include "shared/base/turn_times.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shared/base/event_loop.h"
#include "shared/base/log_observer.h"
#include "tests/doubles/manual_clock.h"

namespace pnfsrdma {
namespace {

struct LoopTurns : testing::Test {
  LoopTurns() {
    observe_log([this](LogLevel, std::string_view, std::string_view text) { lines.emplace_back(text); });
  }
  ~LoopTurns() override { observe_log(nullptr); }

  // One turn that takes so long.
  void turn(Milliseconds takes) {
    loop.post([this, takes] {
      const EventLoop::Step step(loop, "teardown", 7);
      clock.advance(takes);
    });
    loop.run_once(Milliseconds(0));
  }

  ManualClock clock;
  EventLoop loop{clock};
  std::vector<std::string> lines;
};

TEST_F(LoopTurns, AreCountedByTheirLength) {
  turn(Milliseconds(0));
  turn(Milliseconds(3));
  turn(Milliseconds(150));
  const auto times = loop.turns().times();
  EXPECT_EQ(times.count(), 3u);
  EXPECT_EQ(times.sum, Milliseconds(153));
  EXPECT_EQ(times.counts[LatencyHistogram::bucket_of(Milliseconds(3))], 1u);
  EXPECT_EQ(times.counts[LatencyHistogram::bucket_of(Milliseconds(150))], 1u);
  EXPECT_EQ(loop.turns().slow(), 1u);
}

TEST_F(LoopTurns, WaitingIsNoPartOfOne) {
  loop.run_once(Milliseconds(5));
  EXPECT_EQ(loop.turns().times().sum, Milliseconds(0));
}

TEST_F(LoopTurns, ASlowOneIsLoggedWithItsLongestStep) {
  loop.post([this] {
    {
      const EventLoop::Step step(loop, "OPEN", 3);
    }
    {
      const EventLoop::Step step(loop, "REMOVE", 9);
      clock.advance(Milliseconds(120));
    }
    const EventLoop::Step step(loop, "CLOSE", 4);
    clock.advance(Milliseconds(10));
  });
  loop.run_once(Milliseconds(0));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("slow-turn milliseconds=130 did=REMOVE client=0x9 step_milliseconds=120 steps=3"),
            std::string::npos)
      << lines[0];
}

TEST_F(LoopTurns, OfManySlowOnesFewAreLogged) {
  for (int i = 0; i < 100; ++i) turn(Milliseconds(101));
  EXPECT_LE(lines.size(), 4u);
  EXPECT_GE(lines.size(), 2u);
  EXPECT_NE(lines[1].find("not_logged="), std::string::npos);
  EXPECT_EQ(loop.turns().slow(), 100u);
}

TEST_F(LoopTurns, StallsAreForgottenAfterAWhile) {
  turn(Milliseconds(1500));
  EXPECT_EQ(loop.turns().recent(clock.now()).stalled, 1u);
  EXPECT_EQ(loop.turns().recent(clock.now()).longest, Milliseconds(1500));
  clock.advance(TurnTimes::kWindow);
  turn(Milliseconds(200));
  EXPECT_EQ(loop.turns().recent(clock.now()).stalled, 1u);
  clock.advance(2 * TurnTimes::kWindow);
  EXPECT_EQ(loop.turns().recent(clock.now()).stalled, 0u);
  EXPECT_EQ(loop.turns().recent(clock.now()).longest, Milliseconds(0));
}

}  // namespace
}  // namespace pnfsrdma
