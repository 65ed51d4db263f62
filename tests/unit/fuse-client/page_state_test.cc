// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/page_state.h"

#include <gtest/gtest.h>

namespace pnfsrdma::fuse_client {
namespace {

using namespace std::chrono_literals;

// The kernel has pages of change 10, size 100, asked for at `start` and heard of one millisecond later.
class PageStateTest : public testing::Test {
 protected:
  PageStateTest() {
    EXPECT_FALSE(pages.outdated_by({10, 100, start, false}, start + 1ms));
    pages.told(100);
    EXPECT_TRUE(pages.hand_out());
  }
  bool outdated(uint64_t change, std::chrono::milliseconds asked_at, bool own = false, uint64_t size = 100) {
    return pages.outdated_by({change, size, start + asked_at, own}, start + asked_at + 1ms);
  }
  void drop(uint64_t change, std::chrono::milliseconds asked_at) {
    pages.begin_drop();
    pages.end_drop({change, 100, start + asked_at, false}, start + asked_at + 2ms);
  }

  PageState pages;
  const SteadyTime start = SteadyTime(1h);
};

TEST_F(PageStateTest, TheSameChangeOutdatesNothingAndIsNewsOfNow) {
  EXPECT_FALSE(outdated(10, 500ms));
  EXPECT_EQ(pages.checked_at(), start + 500ms);
  EXPECT_FALSE(outdated(10, 400ms));
  EXPECT_EQ(pages.checked_at(), start + 500ms);
}

TEST_F(PageStateTest, AnotherHostsChangeOutdatesThemUntilTheyAreDropped) {
  EXPECT_TRUE(outdated(11, 10ms));
  EXPECT_TRUE(outdated(11, 20ms));
  EXPECT_TRUE(pages.handed_out());
  EXPECT_EQ(pages.checked_at(), start);
  drop(11, 20ms);
  EXPECT_FALSE(pages.handed_out());
  EXPECT_FALSE(outdated(11, 30ms));
  EXPECT_TRUE(pages.hand_out());
  EXPECT_FALSE(outdated(11, 40ms));
  EXPECT_TRUE(outdated(12, 50ms));
}

TEST_F(PageStateTest, OneChangeByOurOwnOperationIsOurs) {
  EXPECT_FALSE(outdated(11, 10ms, true));
  EXPECT_EQ(pages.checked_at(), start + 10ms);
  EXPECT_FALSE(outdated(12, 20ms, true));
  EXPECT_FALSE(outdated(12, 30ms));
  EXPECT_TRUE(outdated(13, 40ms));
}

TEST_F(PageStateTest, TwoChangesOfWhichOneIsOursAreNot) {
  EXPECT_TRUE(outdated(12, 10ms, true));
}

TEST_F(PageStateTest, OneThatMayBeCountedAlreadyIsNot) {
  // Ours was sent at 10 ms. A question beside it was answered with it, at 21 ms; then came another host's.
  drop(11, 20ms);
  EXPECT_TRUE(pages.hand_out());
  EXPECT_TRUE(outdated(12, 10ms, true));
}

TEST_F(PageStateTest, ParallelOperationsOfOursAreToldApartOnlyInOrder) {
  EXPECT_FALSE(outdated(11, 10ms, true));
  // Sent before the answer to the first was there: it may be counted in 11, and 12 another host's.
  EXPECT_TRUE(outdated(12, 10ms, true));
}

TEST_F(PageStateTest, ARestartOfTheServerIsNoChangeOfOurs) {
  EXPECT_TRUE(outdated((uint64_t{1} << 40) + 1, 10ms, true));
}

TEST_F(PageStateTest, AnOvertakenAnswerSaysNothing) {
  EXPECT_FALSE(outdated(11, 10ms, true));
  EXPECT_FALSE(outdated(10, 5ms));
  EXPECT_FALSE(outdated(11, 20ms));
  // Asked first, and yet with the later change.
  EXPECT_TRUE(outdated(12, 5ms));
  // Asked last, and yet with an earlier one: the server was restored from a copy.
  EXPECT_TRUE(outdated(9, 30ms));
}

TEST_F(PageStateTest, AnOlderDropDoesNotBringTheOlderChangeBack) {
  pages.begin_drop();
  pages.begin_drop();
  pages.end_drop({12, 100, start + 20ms, false}, start + 30ms);
  pages.end_drop({11, 100, start + 10ms, false}, start + 31ms);
  EXPECT_TRUE(pages.hand_out());
  EXPECT_FALSE(outdated(12, 40ms));
}

TEST_F(PageStateTest, WithoutPagesAnyChangeIsTakenIn) {
  drop(10, 10ms);
  EXPECT_FALSE(outdated(15, 20ms));
  EXPECT_TRUE(pages.hand_out());
  EXPECT_FALSE(pages.hand_out());
  EXPECT_FALSE(outdated(15, 30ms));
  EXPECT_TRUE(outdated(16, 40ms));
}

TEST_F(PageStateTest, WhileTheyAreBeingDroppedTheyAreThere) {
  pages.begin_drop();
  EXPECT_TRUE(pages.may_be_there());
  EXPECT_TRUE(outdated(11, 10ms));
  pages.end_drop({11, 100, start + 10ms, false}, start + 20ms);
  EXPECT_FALSE(pages.may_be_there());
  EXPECT_FALSE(outdated(11, 30ms));
}

TEST_F(PageStateTest, WhatIsHandedOutDuringADropStays) {
  pages.begin_drop();
  EXPECT_TRUE(pages.hand_out());
  pages.end_drop({11, 100, start + 10ms, false}, start + 20ms);
  EXPECT_TRUE(outdated(12, 30ms));
}

TEST_F(PageStateTest, ALongerFileThanTheKernelKnowsOutdatesThePageAtItsEnd) {
  EXPECT_TRUE(outdated(10, 10ms, false, 101));
  EXPECT_TRUE(outdated(11, 10ms, true, 101));
  EXPECT_FALSE(outdated(10, 20ms, false, 99));
  // It was told a size that a write had overtaken: the kernel has put zeros behind it.
  pages.told(99);
  EXPECT_TRUE(outdated(10, 30ms, false, 100));
}

TEST_F(PageStateTest, WhatTheKernelHasWrittenItselfItKnows) {
  EXPECT_FALSE(pages.written(90, 200));
  EXPECT_FALSE(outdated(11, 10ms, true, 200));
  EXPECT_FALSE(pages.written(0, 10));
  EXPECT_FALSE(pages.written(200, 210));
  EXPECT_FALSE(outdated(12, 20ms, true, 210));
  EXPECT_TRUE(outdated(12, 30ms, false, 211));
}

TEST_F(PageStateTest, AWriteBehindTheEndThatTheKernelKnewMayHideBytes) {
  EXPECT_TRUE(pages.written(101, 110));
  EXPECT_FALSE(pages.written(110, 120));
  drop(10, 10ms);
  EXPECT_FALSE(pages.written(300, 310));
}

TEST_F(PageStateTest, ADropInDoubtKeepsWhatWasKnownAndHoldsAnswersBack) {
  pages.begin_drop_in_doubt();
  EXPECT_TRUE(outdated(10, 10ms));
  EXPECT_TRUE(pages.may_be_there());
  pages.end_drop_in_doubt(start + 20ms);
  EXPECT_EQ(pages.checked_at(), start + 20ms);
  EXPECT_FALSE(outdated(10, 30ms));
  EXPECT_TRUE(pages.hand_out());
  EXPECT_TRUE(outdated(11, 40ms));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
