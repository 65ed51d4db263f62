// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/invalidator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "fuse-client/kernel_pages.h"
#include "shared/base/guarded.h"

namespace pnfsrdma::fuse_client {
namespace {

using namespace std::chrono_literals;

// The kernel: a node of `stuck` is not forgotten before it is let go.
struct Kernel {
  struct State {
    std::map<uint64_t, int> forgotten;
    std::map<uint64_t, bool> stuck;
  };
  Guarded<State> state;

  void forget(uint64_t node) {
    while (state.lock()->stuck[node]) std::this_thread::sleep_for(1ms);
    ++state.lock()->forgotten[node];
  }
  int forgotten(uint64_t node) { return state.lock()->forgotten[node]; }
};

template <typename Condition>
bool comes(const Condition& condition) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!condition() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
  return condition();
}

struct InvalidatorTest : testing::Test {
  Kernel kernel;
  Invalidator invalidator;
  InvalidatorTest() {
    invalidator.start([this](uint64_t node, int64_t, int64_t) { kernel.forget(node); });
  }
};

TEST_F(InvalidatorTest, AFileOfASilentBrickHoldsNoOtherUp) {
  kernel.state.lock()->stuck[1] = true;
  std::atomic<int> done = 0;
  invalidator.pages(1, [&] { done += 100; });
  for (uint64_t node = 2; node < 20; ++node) invalidator.pages(node, [&] { ++done; });
  EXPECT_TRUE(comes([&] { return done == 18; }));
  kernel.state.lock()->stuck[1] = false;
  EXPECT_TRUE(comes([&] { return done == 118; }));
}

TEST_F(InvalidatorTest, WhatWaitsForTheSameFileIsDoneTogether) {
  auto state = kernel.state.lock();
  for (uint64_t node = 1; node <= 64; ++node) (*state).stuck[node] = true;
  (*state).stuck.erase(64);
  {
    auto released = std::move(state);
  }
  std::atomic<int> done = 0;
  for (uint64_t node = 1; node < 64; ++node) invalidator.pages(node);  // more than there are threads
  for (int i = 0; i < 10; ++i) invalidator.pages(64, [&] { ++done; });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(done, 0);
  for (uint64_t node = 1; node < 64; ++node) kernel.state.lock()->stuck[node] = false;
  EXPECT_TRUE(comes([&] { return done == 10; }));
  EXPECT_EQ(kernel.forgotten(64), 1);
}

TEST_F(InvalidatorTest, TheEndWaitsForWhatIsUnderWayAndNotForLong) {
  kernel.state.lock()->stuck[1] = true;
  invalidator.pages(1);
  const auto now = [] { return std::chrono::steady_clock::now(); };
  EXPECT_FALSE(invalidator.drain(now() + 20ms));
  kernel.state.lock()->stuck[1] = false;
  EXPECT_TRUE(invalidator.drain(now() + 20s));
  EXPECT_EQ(kernel.forgotten(1), 1);
}

TEST_F(InvalidatorTest, WhoeverWaitsAtTheEndIsAnswered) {
  std::atomic<int> done = 0;
  invalidator.stop();
  invalidator.pages(1, [&] { ++done; });
  EXPECT_EQ(done, 1);
  EXPECT_EQ(kernel.forgotten(1), 0);
}

struct KernelPagesTest : InvalidatorTest {
  const SystemClock clock;
  PageWatch watch{clock, 1h, [](PageWatch::Files, SteadyTime) {}, [](const auto&) {}};
  KernelPages pages{invalidator, clock};
  const std::shared_ptr<Inode> file = std::make_shared<Inode>(nfs4::FileHandle(as_bytes("f")), 5, 5);
  std::atomic<int> told = 0;

  KernelPagesTest() {
    pages.watched_by(watch);
    pages.keep();
    tell(1, 100);
    pages.hand_out(file);
  }
  void tell(uint64_t change, uint64_t size) {
    pages.when_current(file, {change, size, clock.now(), false}, [this] { ++told; });
  }
};

TEST_F(KernelPagesTest, AForeignChangeIsToldWhenThePagesAreForgotten) {
  EXPECT_EQ(told, 1);
  tell(1, 100);
  EXPECT_EQ(told, 2);
  kernel.state.lock()->stuck[5] = true;
  tell(2, 200);
  tell(2, 200);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(told, 2);
  kernel.state.lock()->stuck[5] = false;
  EXPECT_TRUE(comes([&] { return told == 4; }));
  tell(2, 200);
  EXPECT_EQ(told, 5);
}

TEST_F(KernelPagesTest, WhereTheKernelGoesByTimesNothingIsHeldBack) {
  KernelPages left_alone(invalidator, clock);
  file->pages.hand_out();
  left_alone.when_current(file, {9, 900, clock.now(), false}, [this] { ++told; });
  EXPECT_EQ(told, 2);
  EXPECT_EQ(kernel.forgotten(5), 0);
}

TEST_F(KernelPagesTest, ADirectWriteIsAnsweredWhenItsPagesAreForgotten) {
  pages.when_forgotten(file, 0, 4096, [this] { ++told; });
  EXPECT_TRUE(comes([&] { return told == 2; }));
  EXPECT_EQ(kernel.forgotten(5), 1);
}

TEST_F(KernelPagesTest, FilesWithPagesAreWatched) {
  EXPECT_EQ(watch.size(), 1u);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
