// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

struct LayoutCommit : ::testing::Test {
  LayoutWorld world;
  InodeId file = world.create("f");
  LayoutGranter::Answer layout = world.get(kAlice, file, IoMode::kReadWrite, 0, 65536, 65536);
  LayoutStateid stateid = world.stateid_of(layout);
};

TEST_F(LayoutCommit, GrowsTheFileButNeverShrinksIt) {
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, 65536}, 9999), Status::kOk);
  EXPECT_EQ(world.stat(file)->size, 10000u);
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, 65536}, 10), Status::kOk);
  EXPECT_EQ(world.stat(file)->size, 10000u);
}

// The WRITE has seen the size of before, and waits for a brick: beside each of the calls that it makes.
TEST_F(LayoutCommit, WhatItHasGrownIsNotTakenBackByAWriteThatFillsAHoleMeanwhile) {
  for (int beside = 0; beside < 4; ++beside) {
    const InodeId other = world.create("g" + std::to_string(beside));
    const auto far = world.get(kAlice, other, IoMode::kReadWrite, 4 << 20, 4096);
    ASSERT_TRUE(far);
    int calls = 0;
    world.brick.before_call = [&] {
      if (calls++ == beside) {
        world.mds->committer().commit({.client = kAlice,
                                       .inode = other,
                                       .stateid = world.stateid_of(far),
                                       .range = {4 << 20, (4 << 20) + 4096},
                                       .last_write_offset = (4 << 20) + 4095},
                                      [](const LayoutCommitter::Answer& answer) { EXPECT_TRUE(answer); });
      }
      return true;
    };
    ASSERT_EQ(world.write(other, 0, std::string(3 << 20, 'w')), Status::kOk);
    world.brick.before_call = [] { return true; };
    EXPECT_EQ(world.stat(other)->size, calls > beside ? (4u << 20) + 4096 : 3u << 20) << "beside " << beside;
    EXPECT_EQ(world.read(other, 0, 5000), std::string(5000, 'w'));
  }
}

TEST_F(LayoutCommit, FlushesTheRangesFirst) {
  bool size_at_flush = true;
  world.brick.before_call = [&] {
    size_at_flush = world.stat(file)->size > 0;
    return true;
  };
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, 65536}, 99, {{0, 100}}), Status::kOk);
  EXPECT_EQ(world.brick.calls.back(), "persist");
  EXPECT_FALSE(size_at_flush);
  EXPECT_EQ(world.stat(file)->size, 100u);
}

TEST_F(LayoutCommit, RefusesWhatIsNotHeldAndChangesNothing) {
  EXPECT_EQ(world.commit(kAlice, file, stateid, {1 << 20, 2 << 20}, 1 << 20), Status::kBadLayout);
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, 2 << 20}, 1 << 20), Status::kBadLayout);
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, 100}, 100), Status::kInval);
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, 65536}, 99, {{1 << 20, 4096}}), Status::kBadLayout);
  EXPECT_EQ(world.commit(kBob, file, stateid, {0, 65536}, 99), Status::kBadStateid);
  EXPECT_EQ(world.stat(file)->size, 0u);
}

TEST_F(LayoutCommit, AReadLayoutIsABadMode) {
  ASSERT_EQ(world.commit(kAlice, file, stateid, {0, 65536}, 65535), Status::kOk);
  const auto read = world.get(kBob, file, IoMode::kRead, 0, 65536);
  EXPECT_EQ(world.commit(kBob, file, world.stateid_of(read), {0, 65536}, 99), Status::kBadIoMode);
}

TEST_F(LayoutCommit, ASizeFromBeforeARecallIsNotTaken) {
  ASSERT_EQ(world.commit(kAlice, file, stateid, {0, 65536}, 49999), Status::kOk);
  world.obey_recalls();
  ASSERT_EQ(world.set_size(file, 5000), Status::kOk);
  // The grant was one: all of it went with the recall.
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, 65536}, 59999), Status::kBadStateid);
  EXPECT_EQ(world.stat(file)->size, 5000u);
}

TEST_F(LayoutCommit, AnOlderStateidThanACompletedRecallDoesNotGrowTheFileByWhatIsStillHeld) {
  const auto far = world.get(kAlice, file, IoMode::kReadWrite, 4 << 20, 4096);
  ASSERT_TRUE(far);
  const LayoutStateid before = world.stateid_of(far);
  world.obey_recalls();
  bool done = false;
  world.mds->layouts().clear(file, {4 << 20, kEndOfFile}, 1, [&](bool) { done = true; });
  world.settle();
  ASSERT_TRUE(done);
  EXPECT_EQ(world.commit(kAlice, file, before, {0, 65536}, 999), Status::kBadStateid);
  EXPECT_EQ(world.stat(file)->size, 0u);
  LayoutStateid now = before;
  now.seqid += 1;
  EXPECT_EQ(world.commit(kAlice, file, now, {0, 65536}, 999), Status::kOk);
}

TEST_F(LayoutCommit, TimesAloneAreAppliedAtOnceAndDurableLater) {
  ASSERT_EQ(world.commit(kAlice, file, stateid, {0, 65536}, 999), Status::kOk);
  const Sequence before = world.store.last_namespace_sequence();
  const uint64_t change = world.stat(file)->change;
  world.clock.advance(Milliseconds(1000));
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, 65536}, 10), Status::kOk);
  EXPECT_EQ(world.store.last_namespace_sequence(), before);
  EXPECT_GT(world.stat(file)->change, change);
  EXPECT_EQ(world.stat(file)->mtime, world.clock.wall_now());
}

// Bob writes [0, 1 MiB) of a file that Alice writes from 4 MiB on, and dies; neither has committed anything.
struct ALeftover : ::testing::Test {
  static constexpr uint64_t kFar = uint64_t{4} << 20;
  LayoutWorld world;
  InodeId file = world.create("f");
  std::byte own = static_cast<std::byte>('A' + file % 26);
  LayoutStateid alice;

  void SetUp() override {
    const auto far = world.get(kAlice, file, IoMode::kReadWrite, kFar, 4096);
    ASSERT_TRUE(far);
    alice = world.stateid_of(far);
    const auto near = world.get(kBob, file, IoMode::kReadWrite, 0, 1 << 20, 1 << 20);
    ASSERT_TRUE(near);
    ASSERT_TRUE(world.brick.client_write(kBob, world.segments(near).front().write.grant, 5000, own, 3000));
  }
  void bob_dies() {
    world.mds->conflicts().on_client_gone(kBob, [] {});
    world.settle();
  }
};

TEST_F(ALeftover, DoesNotBecomePartOfAFileThatAnotherGrowsOverIt) {
  bob_dies();
  world.pass(Milliseconds(brick::kQuarantineMs));
  ASSERT_EQ(world.commit(kAlice, file, alice, {kFar, kFar + 100}, kFar + 99), Status::kOk);
  EXPECT_EQ(world.stat(file)->size, kFar + 100);
  EXPECT_EQ(world.read(file, 5000, 3000), std::string(3000, '\0'));
}

TEST_F(ALeftover, DelaysTheGrowthUntilItIsZeroed) {
  world.brick.hold_zeroing = true;
  bob_dies();
  EXPECT_EQ(world.commit(kAlice, file, alice, {kFar, kFar + 100}, kFar + 99), Status::kDelay);
  world.pass(Milliseconds(brick::kQuarantineMs));
  EXPECT_EQ(world.commit(kAlice, file, alice, {kFar, kFar + 100}, kFar + 99), Status::kDelay);
  EXPECT_EQ(world.stat(file)->size, 0u);
  world.brick.release();
  world.settle();
  EXPECT_EQ(world.commit(kAlice, file, alice, {kFar, kFar + 100}, kFar + 99), Status::kOk);
  EXPECT_EQ(world.read(file, 5000, 3000), std::string(3000, '\0'));
}

TEST_F(ALeftover, OfALivingWriterIsHisToCommit) {
  ASSERT_EQ(world.commit(kAlice, file, alice, {kFar, kFar + 100}, kFar + 99), Status::kOk);
  EXPECT_EQ(world.read(file, 5000, 3000), std::string(3000, static_cast<char>(own)));
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
