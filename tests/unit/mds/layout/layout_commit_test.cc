// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;
constexpr uint64_t kAlice = LayoutWorld::kAlice;

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
  EXPECT_EQ(world.commit(LayoutWorld::kBob, file, stateid, {0, 65536}, 99), Status::kBadStateid);
  EXPECT_EQ(world.stat(file)->size, 0u);
}

TEST_F(LayoutCommit, AReadLayoutIsABadMode) {
  ASSERT_EQ(world.commit(kAlice, file, stateid, {0, 65536}, 65535), Status::kOk);
  const auto read = world.get(LayoutWorld::kBob, file, IoMode::kRead, 0, 65536);
  EXPECT_EQ(world.commit(LayoutWorld::kBob, file, world.stateid_of(read), {0, 65536}, 99),
            Status::kBadIoMode);
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

}  // namespace
}  // namespace pnfsrdma::mds::testing
