// SPDX-License-Identifier: Apache-2.0
#include "server/console/control_loop.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "server/console/snapshot.h"

namespace pnfsrdma::console {
namespace {

struct Loop : ::testing::Test {
  SystemClock clock;
  EventLoop events{clock};
  ControlLoop loop{events};
  std::thread thread;

  void run() {
    thread = std::thread([this] { events.run(); });
  }
  ~Loop() override {
    events.stop();
    if (thread.joinable()) thread.join();
  }
};

TEST_F(Loop, AnswersManyWhoAskAtOnceEachWithTheirOwn) {
  run();
  std::vector<std::thread> askers;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    askers.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) {
        const auto answer = loop.call<int>([=] { return i * 1000 + k; });
        if (answer && *answer == i * 1000 + k) ++right;
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(right, 400);
}

TEST_F(Loop, WhatWasNotBegunInTimeNeverIs) {
  bool begun = false;
  const auto answer = loop.call<int>(
      [&] {
        begun = true;
        return 1;
      },
      Milliseconds(5));
  EXPECT_EQ(answer.error().number(), EAGAIN);
  events.run_once(Milliseconds(0));
  EXPECT_FALSE(begun);
}

TEST_F(Loop, WhatWasBegunGoesOnAndItsLateAnswerHarmsNobody) {
  run();
  std::function<void(Result<int>)> late;
  const auto answer =
      loop.ask<int>([&](std::function<void(Result<int>)> done) { late = std::move(done); }, Milliseconds(50));
  EXPECT_EQ(answer.error().number(), ETIMEDOUT);
  events.stop();
  thread.join();
  late(7);
}

TEST_F(Loop, WhoWaitsIsToldThatTheServerStops) {
  std::thread stopper([this] { loop.stop(); });
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(loop.call<int>([] { return 1; }, Milliseconds(60'000)).error().number(), EAGAIN);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
  stopper.join();
}

TEST_F(Loop, ASnapshotAsksTheLoopSeldomHoweverManyLook) {
  run();
  std::atomic<int> taken = 0;
  Snapshot<int> snapshot(loop, [&] { return ++taken; });
  std::vector<std::thread> lookers;
  for (int i = 0; i < 8; ++i) {
    lookers.emplace_back([&] {
      for (int k = 0; k < 200; ++k) ASSERT_TRUE(snapshot.get());
    });
  }
  for (std::thread& looker : lookers) looker.join();
  EXPECT_LE(taken, 20);
  const int before = taken;
  snapshot.outdate();
  EXPECT_EQ(**snapshot.get(), before + 1);
}

TEST_F(Loop, WhoeverWaitsForASnapshotOfALoopThatHangsWaitsOneDeadline) {
  constexpr Milliseconds kDeadline{300};
  Snapshot<int> snapshot(loop, [] { return 1; }, kDeadline);  // nobody runs the loop
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::thread> lookers;
  for (int i = 0; i < 8; ++i)
    lookers.emplace_back([&] { EXPECT_EQ(snapshot.get().error().number(), EAGAIN); });
  for (std::thread& looker : lookers) looker.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 4 * kDeadline);
  run();
  EXPECT_TRUE(snapshot.get());
}

TEST_F(Loop, TheRestOfASnapshotIsComputedByWhoeverAsks) {
  run();
  std::thread::id computed;
  Snapshot<int> snapshot(loop, Snapshot<int>::Take([&](const auto& done) {
                           done([&] {
                             computed = std::this_thread::get_id();
                             return 7;
                           });
                         }));
  EXPECT_EQ(**snapshot.get(), 7);
  EXPECT_EQ(computed, std::this_thread::get_id());
}

TEST_F(Loop, ASnapshotThatIsDearIsTakenLessOften) {
  run();
  std::atomic<int> taken = 0;
  Snapshot<int> snapshot(loop, [&] {
    std::this_thread::sleep_for(Milliseconds(40));
    return ++taken;
  });
  ASSERT_TRUE(snapshot.get());
  std::this_thread::sleep_for(Milliseconds(200));
  ASSERT_TRUE(snapshot.get());
  EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace pnfsrdma::console
