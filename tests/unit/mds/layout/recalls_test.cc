// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/recalls.h"

#include <gtest/gtest.h>

#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds {
namespace {

using testing::FakeRecaller;
using testing::kAlice;

constexpr uint64_t kFile = 7;

class RecallsTest : public ::testing::Test {
 protected:
  RecallsTest() { layout().advance(); }

  HeldLayout& layout() {
    HeldLayout* held = table.find(kFile, kAlice);
    return held != nullptr ? *held : table.add(kFile, kAlice, {});
  }
  void granted(uint64_t number, const ByteRange& file) {
    table.add_grant(layout(), {.grant = number, .file = file, .logical = file.begin, .writable = true});
  }
  void gives_back(const ByteRange& range) {
    const auto dead = table.give_back(layout(), range, IoMode::kAny);
    const auto one_brick = [](uint64_t) { return kFirstBrick; };
    for (const auto& piece : table.begin_death(kFile, kAlice, dead, one_brick)) table.end_death(*piece);
    recalls.settle(kAlice, kFile);
  }
  ByteRange last_asked() const {
    const LayoutRecall& recall = recaller.recalls.back();
    return {recall.offset, recall.offset + recall.length};
  }

  ManualClock clock;
  EventLoop loop{clock};
  LayoutTable table;
  FakeRecaller recaller{loop};
  Recalls recalls{loop,
                  table,
                  recaller,
                  std::chrono::seconds(30),
                  {.forget = [](uint64_t, uint64_t, const ByteRange&) {},
                   .revoke = [](uint64_t, uint64_t) {},
                   .record = [](const HeldLayout&) { return true; }}};
  bool done = false;
};

TEST_F(RecallsTest, AskForWholeGrants) {
  granted(1, {0, 8192});
  recalls.demand(kAlice, kFile, {4096, 8192}, [this] { done = true; });
  EXPECT_EQ(last_asked(), (ByteRange{0, 8192}));
  gives_back({0, 8192});
  EXPECT_TRUE(done);
}

// It gave back a hole, as it was asked; the grant reaches further, and nobody would ever have asked for it.
TEST_F(RecallsTest, AGrantThatCameMeanwhileAndReachesFurtherIsAskedForNext) {
  layout().add_hole({4096, 8192});
  recalls.demand(kAlice, kFile, {4096, 8192}, [this] { done = true; });
  EXPECT_EQ(last_asked(), (ByteRange{4096, 8192}));
  granted(1, {4096, 16384});
  gives_back({4096, 8192});
  EXPECT_FALSE(done);
  ASSERT_EQ(recaller.recalls.size(), 2u);
  EXPECT_EQ(last_asked(), (ByteRange{4096, 16384}));
  EXPECT_EQ(recaller.recalls[1].stateid.seqid, recaller.recalls[0].stateid.seqid + 1);
  gives_back({4096, 16384});
  EXPECT_TRUE(done);
  EXPECT_EQ(recaller.recalls.size(), 2u);
}

// Each who goes on gives back what the next one waits for.
TEST_F(RecallsTest, WhoGoesOnIsNotInsideOfAnother) {
  constexpr uint64_t kFiles = 1000;
  size_t depth = 0;
  size_t deepest = 0;
  uint64_t next = 0;
  const std::function<void()> give_back_next = [&] {
    if (next == kFiles) return;
    const uint64_t file = kFile + 1 + next++;
    table.give_back(*table.find(file, kAlice), {0, 4096}, IoMode::kAny);
    recalls.settle(kAlice, file);
  };
  for (uint64_t file = kFile + 1; file <= kFile + kFiles; ++file) {
    HeldLayout& held = table.add(file, kAlice, {});
    held.advance();
    held.add_hole({0, 4096});
    recalls.demand(kAlice, file, {0, 4096}, [&] {
      deepest = std::max(deepest, ++depth);
      give_back_next();
      --depth;
    });
  }
  give_back_next();
  EXPECT_LE(next, 2u) << "in one turn";
  while (next < kFiles) {
    const uint64_t before = next;
    loop.run_once(Milliseconds(0));
    ASSERT_GT(next, before);
  }
  EXPECT_EQ(deepest, 1u);
}

TEST_F(RecallsTest, ThoseWhoWaitForOneLayoutGoOnSomeATurn) {
  layout().add_hole({0, 4096});
  size_t told = 0;
  for (int i = 0; i < 200; ++i) recalls.demand(kAlice, kFile, {0, 4096}, [&] { ++told; });
  gives_back({0, 4096});
  EXPECT_EQ(told, 64u);
  for (int i = 0; i < 3; ++i) loop.run_once(Milliseconds(0));
  EXPECT_EQ(told, 200u);
}

// They are told in a later turn, and until then it counts for them.
TEST_F(RecallsTest, WhatIsGrantedBeforeSomebodyIsToldIsRecalledForHim) {
  layout().add_hole({0, 4096});
  size_t told = 0;
  for (int i = 0; i < 100; ++i) recalls.demand(kAlice, kFile, {0, 4096}, [&] { ++told; });
  gives_back({0, 4096});
  EXPECT_EQ(told, 64u);
  const size_t asked = recaller.recalls.size();
  layout().advance();
  granted(9, {0, 4096});
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(told, 64u);
  EXPECT_EQ(recaller.recalls.size(), asked + 1);
  gives_back({0, 4096});
  EXPECT_EQ(told, 100u);
}

TEST_F(RecallsTest, WhatIsOnItsWayBackIsNotAskedForTwice) {
  granted(1, {0, 8192});
  granted(2, {8192, 16384});
  recalls.demand(kAlice, kFile, {0, 16384}, [this] { done = true; });
  gives_back({0, 8192});
  EXPECT_FALSE(done);
  gives_back({8192, 12288});
  EXPECT_FALSE(done);
  EXPECT_EQ(recaller.recalls.size(), 1u);
  gives_back({12288, 16384});
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace pnfsrdma::mds
