// SPDX-License-Identifier: Apache-2.0
#include "server/console/sampler.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/console/fake_administration.h"

namespace pnfsrdma::console::testing {
namespace {

struct SamplerTest : ::testing::Test {
  SystemClock clock;
  EventLoop events_loop{clock};
  ControlLoop loop{events_loop};
  FakeAdministration administration;
  Throughput throughput;
  History history;
  Sampler sampler{loop, administration, throughput, history};

  // The control loop's thread, while `work` runs.
  void beside_the_loop(const std::function<void()>& work) {
    std::thread thread([this] { events_loop.run(); });
    work();
    loop.stop();
    events_loop.stop();
    thread.join();
  }
  bool has_history() {
    return history.get({HistoryOf::kServer, {}}, 0, administration.counters.time.seconds).has_value();
  }
};

TEST_F(SamplerTest, AddsWhatTheLoopCountsToWhatIsKept) {
  administration.counters.time.seconds = 1'700'000'000;
  beside_the_loop([this] {
    ASSERT_TRUE(sampler.sample());
    EXPECT_FALSE(has_history()) << "two counters make a difference";
    ASSERT_TRUE(sampler.sample());
  });
  EXPECT_TRUE(has_history());
  EXPECT_EQ(throughput.newest(0, 10).size(), 1u);
  EXPECT_EQ(administration.numbers_asked, 2);
}

TEST_F(SamplerTest, BeginsAtOnce) {
  beside_the_loop([this] {
    sampler.start();
    const auto until = steady_now() + std::chrono::seconds(20);
    while (throughput.newest(0, 10).empty() && steady_now() < until) sleep_for(Milliseconds(10));
  });
  EXPECT_EQ(throughput.newest(0, 10).size(), 1u);
}

TEST_F(SamplerTest, EndsWithTheServerWhereTheLoopDoesNotRunAnyMore) {
  sampler.start();
  loop.stop();
  EXPECT_FALSE(sampler.sample());
}

}  // namespace
}  // namespace pnfsrdma::console::testing
