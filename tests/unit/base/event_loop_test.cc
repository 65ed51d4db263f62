// SPDX-License-Identifier: Apache-2.0
#include "shared/base/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "tests/doubles/manual_clock.h"

namespace pnfsrdma {
namespace {

struct LoopTest : testing::Test {
  ManualClock clock;
  EventLoop loop{clock};
  std::vector<int> seen;
};
using EventLoopTimers = LoopTest;
using EventLoopTasks = LoopTest;
using EventLoopDescriptors = LoopTest;

TEST_F(EventLoopTimers, RunInTheOrderOfTheirTimes) {
  loop.after(Milliseconds(20), [&] { seen.push_back(2); });
  loop.after(Milliseconds(10), [&] { seen.push_back(1); });
  clock.advance(Milliseconds(15));
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(seen, std::vector<int>({1}));
  clock.advance(Milliseconds(5));
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(seen, std::vector<int>({1, 2}));
}

TEST_F(EventLoopTimers, ACancelledOneNeverRuns) {
  const auto timer = loop.after(Milliseconds(10), [&] { seen.push_back(1); });
  loop.cancel(timer);
  loop.cancel(timer);
  clock.advance(Milliseconds(50));
  loop.run_once(Milliseconds(0));
  EXPECT_TRUE(seen.empty());
}

TEST_F(EventLoopTimers, OneMayStartAndCancelOthers) {
  EventLoop::TimerId second = 0;
  loop.after(Milliseconds(1), [&] {
    loop.cancel(second);
    loop.after(Milliseconds(0), [&] { seen.push_back(3); });
  });
  second = loop.after(Milliseconds(1), [&] { seen.push_back(2); });
  clock.advance(Milliseconds(1));
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(seen, std::vector<int>({3}));
}

TEST_F(EventLoopTasks, PostedFromOtherThreadsAllRunInTheLoop) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) loop.post([&] { seen.push_back(i); });
    });
  }
  for (auto& thread : threads) thread.join();
  loop.run_once(Milliseconds(1000));
  EXPECT_EQ(seen.size(), 400u);
}

TEST_F(EventLoopTasks, ATurnTakesUpAShareOfThemAndDescriptorsComeBetween) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  loop.watch(ends[0], EPOLLIN, [&](uint32_t) { seen.push_back(-1); });
  for (int i = 0; i < 2; ++i) {
    loop.post([&, i] {
      seen.push_back(i);
      clock.advance(Milliseconds(1));  // more than the share
    });
  }
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(seen, std::vector<int>({0}));
  loop.post([&] { seen.push_back(2); });
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  loop.run_once(Milliseconds(1000));  // which it does not wait
  EXPECT_EQ(seen, std::vector<int>({0, -1, 1}));
  loop.unwatch(ends[0]);
  while (seen.size() < 4) loop.run_once(Milliseconds(1000));
  EXPECT_EQ(seen, std::vector<int>({0, -1, 1, 2}));
  for (const int end : ends) close(end);
}

TEST_F(EventLoopTasks, TheirShareIsAsLongAsThatOfTheDescriptors) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  loop.watch(ends[0], EPOLLIN, [&](uint32_t) {
    seen.push_back(-1);
    clock.advance(EventLoop::kSlice / 2);
  });
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  for (int i = 0; i < 10; ++i) {
    loop.post([&, i] {
      seen.push_back(i);
      clock.advance(EventLoop::kSlice / 4);
    });
  }
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(seen, std::vector<int>({-1, 0, 1}));
  loop.unwatch(ends[0]);
  for (const int end : ends) close(end);
}

TEST_F(EventLoopTimers, ATurnTakesUpAShareOfThem) {
  for (int i = 0; i < 6; ++i) {
    loop.after(Milliseconds(1), [&, i] {
      seen.push_back(i);
      clock.advance(EventLoop::kSlice / 4);
    });
  }
  clock.advance(Milliseconds(1));
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(seen, std::vector<int>({0, 1, 2, 3}));
  loop.run_once(Milliseconds(1000));
  EXPECT_EQ(seen, std::vector<int>({0, 1, 2, 3, 4, 5}));
}

TEST_F(EventLoopTasks, StopEndsRunFromAnotherThread) {
  std::thread stopper([&] { loop.stop(); });
  loop.run();
  stopper.join();
}

TEST_F(EventLoopTasks, TurnEndTasksRunBehindEverythingElseOfTheTurn) {
  loop.post([&] {
    loop.at_turn_end([&] { seen.push_back(2); });
    seen.push_back(1);
  });
  loop.run_once(Milliseconds(1000));
  EXPECT_EQ(seen, std::vector<int>({1, 2}));
}

TEST_F(EventLoopTasks, EachTurnHasOneOfThoseWithATurnOfTheirOwn) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  loop.watch(reader.get(), EPOLLIN, [&](uint32_t) { seen.push_back(-1); });
  ASSERT_EQ(write(writer.get(), "x", 1), 1);
  for (int i = 0; i < 3; ++i) loop.at_own_turn([&, i] { seen.push_back(i); });
  for (int i = 0; i < 3; ++i) loop.run_once(Milliseconds(1000));
  EXPECT_EQ(seen, std::vector<int>({-1, 0, -1, 1, -1, 2}));
  loop.unwatch(reader.get());
}

TEST_F(EventLoopDescriptors, AReadableOneCallsItsHandlerUntilUnwatched) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  loop.watch(reader.get(), EPOLLIN, [&](uint32_t) { seen.push_back(1); });
  ASSERT_EQ(write(writer.get(), "x", 1), 1);
  loop.run_once(Milliseconds(1000));
  loop.run_once(Milliseconds(1000));
  EXPECT_EQ(seen.size(), 2u) << "level-triggered";
  loop.unwatch(reader.get());
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(EventLoopDescriptors, AHandlerMayUnwatchAnotherOneOfTheSameTurn) {
  int a[2], b[2];
  ASSERT_EQ(pipe(a), 0);
  ASSERT_EQ(pipe(b), 0);
  const FileDescriptor owned[] = {FileDescriptor(a[0]), FileDescriptor(a[1]), FileDescriptor(b[0]),
                                  FileDescriptor(b[1])};
  for (auto* pair : {a, b}) {
    auto* other = pair == a ? b : a;
    loop.watch(pair[0], EPOLLIN, [&, other](uint32_t) {
      seen.push_back(1);
      loop.unwatch(other[0]);
    });
    ASSERT_EQ(write(pair[1], "x", 1), 1);
  }
  loop.run_once(Milliseconds(1000));
  EXPECT_EQ(seen.size(), 1u);
}

}  // namespace
}  // namespace pnfsrdma
