// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <climits>
#include <thread>
#include <vector>

#include "tests/unit/initiator/file/data_path_fixture.h"

// Words that the brick changes: once, whatever becomes of the connection, the grant and the brick.
namespace pnfsrdma::initiator {
namespace {

using Events = std::vector<std::string>;
using brick::WordChange;

class WordsTest : public DataPathTest {
 protected:
  void SetUp() override {
    make_file(1 << 20);
    set(64, 5);
    ready();
  }
  // Connected, under a layout, nothing left to tell.
  void ready() {
    write(8192, 4096, 1);
    ASSERT_TRUE(file->fsync(cursor));
    ASSERT_TRUE(file->settle());
    begin();
  }
  void begin() {
    events.take();
    calls_before_ = channel.calls;
    round_trips_before_ = path->statistics().rdma_round_trips.value();
  }
  Result<uint64_t> add(uint64_t addend, bool durable = false, uint64_t offset = 64) {
    return file->change_word(offset,
                             {.change = WordChange::kFetchAndAdd, .operand = addend, .durable = durable});
  }
  int error_of(const Result<uint64_t>& result) { return result ? 0 : result.error().number(); }
  void set(uint64_t offset, uint64_t value) { std::memcpy(brick.memory() + offset, &value, sizeof value); }
  uint64_t word(uint64_t offset = 64) {
    uint64_t value = 0;
    std::memcpy(&value, brick.memory() + offset, sizeof value);
    return value;
  }
  int mds_calls() const { return channel.calls - calls_before_; }
  uint64_t round_trips() const { return path->statistics().rdma_round_trips.value() - round_trips_before_; }

 private:
  int calls_before_ = 0;
  uint64_t round_trips_before_ = 0;
};

TEST_F(WordsTest, AChangeIsOneRoundTripDurableOrNot) {
  EXPECT_EQ(*add(3), 5u);
  EXPECT_EQ(word(), 8u);
  EXPECT_EQ(*add(1, true), 8u);
  EXPECT_EQ(*file->change_word(64, {.change = WordChange::kCompareAndSwap, .operand = 20, .expected = 9}),
            9u);
  EXPECT_EQ(*file->change_word(64, {.change = WordChange::kCompareAndSwap, .operand = 30, .expected = 9}),
            20u);
  EXPECT_EQ(*file->change_word(72, {.change = WordChange::kStore, .operand = 7, .durable = true}), [] {
    uint64_t before = 0;
    for (int i = 7; i >= 0; --i) before = before << 8 | static_cast<uint8_t>(pattern(72 + i));
    return before;
  }());
  EXPECT_EQ(word(), 20u);
  EXPECT_EQ(word(72), 7u);
  EXPECT_EQ(round_trips(), 5u);
  EXPECT_EQ(mds_calls(), 0);
  EXPECT_EQ(events.take(), (Events{"word 64", "word 64 durable", "word 64", "word 64", "word 72 durable"}));
}

TEST_F(WordsTest, WhatIsNotDurableYetAnFdatasyncFlushes) {
  ASSERT_TRUE(add(1, true));
  begin();
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{});
  ASSERT_TRUE(add(1));
  begin();
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{"persist 64+8"});
}

TEST_F(WordsTest, AComparisonThatFailsChangesNothing) {
  ASSERT_TRUE(file->change_word(64, {.change = WordChange::kCompareAndSwap, .operand = 20, .expected = 9}));
  EXPECT_EQ(word(), 5u);
  begin();
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Events{});
}

TEST_F(WordsTest, MadeAndNotAnsweredItIsNotMadeAgain) {
  brick.unanswered_changes = 2;
  EXPECT_EQ(*add(3), 5u);
  EXPECT_EQ(word(), 8u);
  EXPECT_EQ(events.take(), (Events{"word 64", "word again", "word again"}));
  EXPECT_EQ(*add(1), 8u);
}

// The connections are everybody's: with every thread's change one of them may die.
TEST_F(WordsTest, ManyConnectionsThatDieInARowMakeNoChangeUnknown) {
  brick.unanswered_changes = 20;
  EXPECT_EQ(*add(3), 5u);
  EXPECT_EQ(word(), 8u);
}

// A recall need not wait until somebody knows whether it was made: it flushes what may have been.
TEST_F(WordsTest, ARecallMeanwhileFlushesWhatMayHaveBeenMade) {
  brick.connections_max = brick.connections.load();
  brick.unanswered_changes = 1;
  std::thread changing([&] { EXPECT_EQ(*add(3), 5u); });
  while (brick.unanswered_changes > 0) std::this_thread::sleep_for(Milliseconds(1));
  std::thread recalling([&] { recall(0, UINT64_MAX, channel.recall_stateid()).then(); });
  std::this_thread::sleep_for(Milliseconds(100));
  EXPECT_EQ(channel.layoutreturns, 0);
  brick.connections_max = INT_MAX;
  recalling.join();
  changing.join();
  EXPECT_EQ(channel.layoutreturns, 1);
  const Events seen = events.take();
  // The brick has turned the mount away, so its layouts are gone: the MDS flushes.
  EXPECT_LT(std::ranges::find(seen, "commit"), std::ranges::find(seen, "layoutreturn"))
      << ::testing::PrintToString(seen);
}

TEST_F(WordsTest, ABrickThatNeverAnswersIsNotAskedForEver) {
  brick.unanswered_changes = 1000;
  EXPECT_EQ(error_of(add(3)), EIO);
  EXPECT_EQ(word(), 8u);
  EXPECT_GT(brick.unanswered_changes, 900);
  brick.unanswered_changes = 0;
}

TEST_F(WordsTest, LostOnTheWayItIsMadeWhenItIsAskedForAgain) {
  brick.unmade_changes = 2;
  EXPECT_EQ(*add(3), 5u);
  EXPECT_EQ(word(), 8u);
  EXPECT_EQ(events.take(), Events{"word 64"});
}

TEST_F(WordsTest, WhenTheBrickHasBegunAnewNobodyKnowsAndNothingIsDoneAgain) {
  brick.unanswered_changes = 1;
  brick.record = 2;  // from the next connection on
  const auto changed = add(3);
  EXPECT_EQ(error_of(changed), EIO);
  EXPECT_EQ(word(), 8u);
  EXPECT_EQ(events.take(), Events{"word 64"});
  EXPECT_NE(changed.error().to_string().find("not known"), std::string::npos) << changed.error().to_string();
}

TEST_F(WordsTest, ABrickOfBeforeIsNotAsked) {
  brick.understands = 0;
  brick.cut_connection();
  EXPECT_EQ(error_of(add(3)), ENOTSUP);
  EXPECT_EQ(word(), 5u);
  write(4096, 100, 3);
  expect_read(4096, 100, 3);
}

TEST_F(WordsTest, WhatIsNotAWordOfTheFileIsRefused) {
  EXPECT_EQ(error_of(add(1, false, 65)), EINVAL);
  EXPECT_EQ(error_of(add(1, false, 68)), EINVAL);
  EXPECT_EQ(error_of(add(1, false, 1 << 20)), EINVAL);
  EXPECT_EQ(error_of(add(1, false, (1 << 20) - 4)), EINVAL);
  EXPECT_EQ(error_of(add(1, false, UINT64_MAX - 7)), EINVAL);
  EXPECT_EQ(events.take(), Events{});
  EXPECT_TRUE(add(1, false, (1 << 20) - 8));
}

TEST_F(WordsTest, AGrantThatWasWithdrawnIsAskedForAnew) {
  brick.withdraw(0, FakeBrick::kBytes);
  EXPECT_EQ(*add(3), 5u);
  EXPECT_EQ(word(), 8u);
  EXPECT_GT(mds_calls(), 0);
}

TEST_F(WordsTest, WhereNoMemoryIsGrantedNothingIsChangedAndItSaysAgain) {
  channel.refuse_layoutgets(std::vector(20, nfs4::Status::kLayoutUnavailable));
  brick.withdraw(0, FakeBrick::kBytes);
  EXPECT_EQ(error_of(add(3)), EAGAIN);
  EXPECT_EQ(word(), 5u);
}

TEST_F(WordsTest, GrowthIsTheServersBeforeAWordOfItIsChanged) {
  write(1 << 20, 4096, 9);
  set(1 << 20, 1);
  EXPECT_EQ(*add(1, true, 1 << 20), 1u);
  EXPECT_EQ(word(1 << 20), 2u);
  EXPECT_EQ(channel.size, (1u << 20) + 4096);
}

TEST_F(WordsTest, AFailedFlushIsToldAndTheNextFsyncHearsOfTheLoss) {
  ASSERT_TRUE(add(1));
  brick.fail_flush(9);
  EXPECT_EQ(error_of(add(1, true)), EIO);
  EXPECT_EQ(word(), 7u);
  EXPECT_FALSE(file->fdatasync(cursor));
}

TEST_F(WordsTest, ManyAtOnceLoseNothingWhileConnectionsDie) {
  constexpr int kThreads = 6, kTurns = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) EXPECT_TRUE(add(1, turn % 8 == 0));
    });
  }
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(Milliseconds(5));
    brick.unanswered_changes = 1;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(word(), 5u + kThreads * kTurns);
}

}  // namespace
}  // namespace pnfsrdma::initiator
