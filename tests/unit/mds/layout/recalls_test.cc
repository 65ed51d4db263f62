// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/recalls.h"

#include <gtest/gtest.h>

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
