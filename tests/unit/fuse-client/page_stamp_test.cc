// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/page_stamp.h"

#include <gtest/gtest.h>

namespace pnfsrdma::fuse_client {
namespace {

using namespace std::chrono_literals;
using enum PageAsker;

// Change 10 and the time 100.0 are known, asked for at `start`, heard of one millisecond later.
class PageStampTest : public testing::Test {
 protected:
  PageStampTest() { learn(10, 0ms, false, {100, 0}); }

  void learn(uint64_t change, Milliseconds asked_at, bool own, timespec modified) {
    stamp.take_in({change, start + asked_at, start + asked_at + 1ms, own}, modified);
  }
  bool is(timespec time) const { return is_same_time(stamp.time(), time); }

  const SteadyTime start = SteadyTime() + 1h;
  PageStamp stamp;
};

TEST_F(PageStampTest, IsTheFilesTimeAtFirst) {
  EXPECT_TRUE(is({100, 0}));
}

TEST_F(PageStampTest, OwnChangesDoNotMoveIt) {
  learn(11, 10ms, true, {101, 0});
  learn(12, 20ms, true, {102, 0});
  EXPECT_TRUE(is({100, 0}));
  EXPECT_EQ(stamp.foreign_changes(), 1u);
}

TEST_F(PageStampTest, AnothersChangeMovesIt) {
  learn(11, 10ms, false, {101, 0});
  EXPECT_TRUE(is({101, 0}));
  EXPECT_EQ(stamp.foreign_changes(), 2u);
}

TEST_F(PageStampTest, OursAndAnothersAtOnceMoveIt) {
  learn(12, 10ms, true, {101, 0});
  EXPECT_TRUE(is({101, 0}));
}

// Sent before what is known was heard: one of the two moves may be another host's.
TEST_F(PageStampTest, OursThatWasSentBeforeTheLastAnswerCameMovesIt) {
  learn(11, 10ms, true, {101, 0});
  stamp.take_in({12, start + 10ms, start + 30ms, true}, {102, 0});
  EXPECT_TRUE(is({102, 0}));
}

TEST_F(PageStampTest, AnOlderAnswerIsNotLookedAt) {
  learn(12, 10ms, false, {102, 0});
  learn(11, 5ms, false, {101, 0});
  EXPECT_TRUE(is({102, 0}));
}

// A server that has lost its memory, or another one.
TEST_F(PageStampTest, AChangeThatGoesBackMovesIt) {
  learn(7, 10ms, false, {99, 0});
  EXPECT_TRUE(is({99, 0}));
}

TEST_F(PageStampTest, MovesAlsoWhenTheFilesTimeDoesNot) {
  learn(11, 10ms, false, {100, 0});
  EXPECT_FALSE(is({100, 0}));
}

TEST_F(PageStampTest, DoesNotComeBackToTheOneBefore) {
  learn(11, 10ms, false, {101, 0});
  learn(12, 20ms, false, {100, 0});
  EXPECT_FALSE(is({100, 0}));
  EXPECT_FALSE(is({101, 0}));
}

TEST_F(PageStampTest, DoubtMovesIt) {
  stamp.doubt();
  EXPECT_FALSE(is({100, 0}));
  EXPECT_EQ(stamp.foreign_changes(), 2u);
  stamp.doubt();
  EXPECT_EQ(stamp.foreign_changes(), 3u);
}

TEST_F(PageStampTest, DoubtAtTheEndOfASecondMovesIt) {
  learn(11, 10ms, false, {101, 999'999'999});
  stamp.doubt();
  EXPECT_FALSE(is({101, 999'999'999}));
  EXPECT_LT(stamp.time().tv_nsec, 1'000'000'000);
}

// A file of 1 MiB: 32 questions cost what reading it costs.
TEST_F(PageStampTest, GivesInWhenTheQuestionsCostMoreThanTheFile) {
  (void)stamp.instead_of({100, 0}, 1 << 20, kReader);
  learn(11, 10ms, true, {101, 0});
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(stamp.instead_of({101, 0}, 1 << 20, kReader)) << i;
  EXPECT_FALSE(stamp.instead_of({101, 0}, 1 << 20, kReader));
  EXPECT_TRUE(is({101, 0}));
}

// Pages that wait for a silent brick hold up who drops them: that must not be a stat(2), nor a path.
TEST_F(PageStampTest, GivesInForReadersOnly) {
  (void)stamp.instead_of({100, 0}, 1, kReader);
  learn(11, 10ms, true, {101, 0});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(stamp.instead_of({101, 0}, 1, kStat));
    ASSERT_TRUE(stamp.instead_of({101, 0}, 1, kName));
  }
  EXPECT_TRUE(stamp.instead_of({101, 0}, 1, kReader));
}

TEST_F(PageStampTest, EachChangeBeginsTheCountAnew) {
  (void)stamp.instead_of({100, 0}, 1, kReader);
  for (int change = 11; change < 20; ++change) {
    learn(static_cast<uint64_t>(change), change * 10ms, true, {change + 90, 0});
    for (int i = 0; i < 16; ++i)
      ASSERT_TRUE(stamp.instead_of({change + 90, 0}, 1, i % 2 == 0 ? kReader : kName));
  }
  EXPECT_TRUE(is({100, 0}));
}

// They are told to the server once a second or so.
TEST_F(PageStampTest, WritesOfWhichTheServerHasNotHeardBeginItAnewToo) {
  (void)stamp.instead_of({100, 0}, 1, kReader);
  for (int write = 1; write < 100; ++write) {
    for (int i = 0; i < 16; ++i) ASSERT_TRUE(stamp.instead_of({100, write}, 1, kReader));
  }
  EXPECT_TRUE(is({100, 0}));
}

// The kernel must take in the size that came with it, or a mapping of that size would be cut.
TEST_F(PageStampTest, AForeignChangeIsShownWithTheFilesOwnTime) {
  (void)stamp.instead_of({100, 0}, 1, kReader);
  learn(11, 10ms, true, {101, 0});
  learn(12, 20ms, false, {102, 0});
  EXPECT_FALSE(stamp.instead_of({103, 0}, 1, kStat));  // ours, not committed, is later
  EXPECT_TRUE(is({103, 0}));
}

TEST_F(PageStampTest, AForeignChangeIsToldToAReadByTheStamp) {
  (void)stamp.instead_of({100, 0}, 1, kReader);
  learn(12, 20ms, false, {102, 0});
  ASSERT_TRUE(stamp.instead_of({103, 0}, 1, kReader));
  ASSERT_TRUE(stamp.instead_of({103, 0}, 1, kStat));
  EXPECT_TRUE(is({102, 0}));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
