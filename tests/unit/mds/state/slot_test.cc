// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/slot.h"

#include <gtest/gtest.h>

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;
using Verdict = SlotTable::Verdict;

std::shared_ptr<const Bytes> some_reply() {
  return std::make_shared<const Bytes>(Bytes(3));
}

TEST(Slot, FirstSeqidIsOne) {
  SlotTable slots(4);
  EXPECT_EQ(slots.begin(0, 0, 0, 9).error(), Status::kSeqMisordered);
  EXPECT_EQ(slots.begin(0, 2, 0, 9).error(), Status::kSeqMisordered);
  EXPECT_EQ(*slots.begin(0, 1, 0, 9), Verdict::kNew);
}

TEST(Slot, RetryWhileTheFirstOneRunsIsDelayed) {
  SlotTable slots(1);
  ASSERT_EQ(*slots.begin(0, 1, 0, 9), Verdict::kNew);
  EXPECT_EQ(slots.begin(0, 1, 0, 9).error(), Status::kDelay);
  EXPECT_EQ(slots.begin(0, 2, 0, 9).error(), Status::kSeqMisordered);
}

TEST(Slot, RetryAfterTheReplyGetsTheSameBytes) {
  SlotTable slots(1);
  ASSERT_EQ(*slots.begin(0, 1, 0, 9), Verdict::kNew);
  const auto reply = some_reply();
  slots.finish(0, reply);
  EXPECT_EQ(*slots.begin(0, 1, 0, 9), Verdict::kReplay);
  EXPECT_EQ(slots.at(0).reply, reply);
}

TEST(Slot, RetryOfAnUncachedRequestSaysSo) {
  SlotTable slots(1);
  ASSERT_EQ(*slots.begin(0, 1, 0, 9), Verdict::kNew);
  slots.finish(0, nullptr);
  EXPECT_EQ(*slots.begin(0, 1, 0, 9), Verdict::kReplayUncached);
}

TEST(Slot, AnotherRequestWithTheSameSeqidIsAFalseRetry) {
  SlotTable slots(1);
  ASSERT_EQ(*slots.begin(0, 1, 0, 9), Verdict::kNew);
  slots.finish(0, some_reply());
  EXPECT_EQ(slots.begin(0, 1, 0, 10).error(), Status::kSeqFalseRetry);
}

TEST(Slot, SeqidWrapsThroughZero) {
  SlotTable slots(1);
  for (const uint32_t seqid : {1U, 2U}) {
    ASSERT_EQ(*slots.begin(0, seqid, 0, 9), Verdict::kNew);
    slots.finish(0, nullptr);
  }
  EXPECT_EQ(slots.begin(0, 0, 0, 9).error(), Status::kSeqMisordered);
}

TEST(Slot, SlotsOutOfRangeAreRefused) {
  SlotTable slots(2);
  EXPECT_EQ(slots.begin(2, 1, 2, 9).error(), Status::kBadSlot);
  EXPECT_EQ(slots.begin(0, 1, 2, 9).error(), Status::kBadHighSlot);
  EXPECT_EQ(slots.begin(1, 1, 0, 9).error(), Status::kBadHighSlot);
}

TEST(Slot, TableShrinksOnlyWhenTheClientHasStoppedUsingTheSlots) {
  SlotTable slots(4);
  slots.set_target_highest(1);
  ASSERT_EQ(*slots.begin(3, 1, 3, 9), Verdict::kNew);
  slots.finish(3, nullptr);
  EXPECT_EQ(slots.highest(), 3U);
  ASSERT_EQ(*slots.begin(0, 1, 1, 9), Verdict::kNew);
  EXPECT_EQ(slots.highest(), 1U);
  EXPECT_EQ(slots.begin(3, 2, 3, 9).error(), Status::kBadSlot);
  slots.set_target_highest(3);
  EXPECT_EQ(*slots.begin(3, 1, 3, 9), Verdict::kNew);
}

}  // namespace
}  // namespace pnfsrdma::mds
