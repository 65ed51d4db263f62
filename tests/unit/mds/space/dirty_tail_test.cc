// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "tests/unit/mds/layout/layout_world.h"

// Bytes that writers left behind the end of a file with many extents: zeroed a batch at a time.
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

struct ADirtyTail : ::testing::Test {
  static constexpr uint64_t kExtents = 3 * kExtentsPerBatch + 7;
  static constexpr uint64_t kStride = 32768;
  static constexpr uint64_t kSize = 100;
  static constexpr uint64_t kReader = 1003;
  static constexpr size_t kOthers = 16;  // rows beside the extents: the inode, records, where a scan ends
  LayoutWorld world;
  InodeId file = world.create("f");
  const std::byte own = static_cast<std::byte>('A' + file % 26);
  size_t rows_of_a_turn = 0;    // the most of any
  size_t zeroed_in_a_turn = 0;  // likewise: ranges
  std::function<void()> at_second_zeroing = [] {};

  // Each extent begins with a byte of the file, and all but the first lie behind the end.
  void SetUp() override {
    const std::string text(1, static_cast<char>(own));
    for (uint64_t i = 0; i < kExtents; ++i) ASSERT_EQ(world.write(file, i * kStride, text), Status::kOk);
    ASSERT_EQ(world.extents(file).size(), kExtents);
    Batch batch;
    Extents::mark_tail_dirty(batch, file);
    ASSERT_TRUE(world.names->update(file, {.size = kSize}, batch));
    world.brick.before_call = [this, zeroings = size_t{0}, seen = world.brick.count("zero")]() mutable {
      // This is the one behind those that have been called.
      if (const size_t count = world.brick.count("zero"); count != seen) {
        seen = count;
        if (++zeroings == 2) at_second_zeroing();
      }
      return true;
    };
  }
  LayoutTable& table() { return const_cast<LayoutTable&>(world.mds->table()); }
  // Past the brick: what is held, not how.
  void hold(uint64_t client, uint64_t grant, const ByteRange& range, bool writable) {
    std::array<std::byte, 12> other{};
    other[0] = kLayoutStateidTag;
    other[11] = static_cast<std::byte>(client);
    HeldLayout& layout = table().add(file, client, other);
    table().add_grant(layout, {.grant = grant, .file = range, .logical = range.begin, .writable = writable});
  }
  void hold_all_extents(uint64_t client, uint64_t step) {
    for (uint64_t i = 0; i < kExtents; i += step)
      hold(client, i + 1, {i * kStride, i * kStride + kGrainSize}, true);
  }
  void dies(uint64_t client) {
    world.mds->conflicts().on_client_gone(client, [] {});
  }
  // Turns until the loop has nothing more to do, and the bytes have rested.
  void pass() {
    for (int moment = 0; moment < 10; ++moment) {
      for (int i = 0; i < 100; ++i) {
        const size_t rows = world.store.rows_visited;
        const size_t zeroed = world.brick.zeroed.size();
        world.loop.run_once(Milliseconds(0));
        rows_of_a_turn = std::max(rows_of_a_turn, world.store.rows_visited - rows);
        zeroed_in_a_turn = std::max(zeroed_in_a_turn, world.brick.zeroed.size() - zeroed);
      }
      world.clock.advance(Milliseconds(brick::kQuarantineMs));
    }
  }
  bool is_dirty() { return *Extents(world.store).tail_dirty(file); }
  std::byte byte_of(uint64_t extent) { return world.brick.byte_at(world.extents(file)[extent].logical); }
  void expect_bounded() {
    EXPECT_LE(rows_of_a_turn, kExtentsPerBatch + kOthers);
    EXPECT_LE(zeroed_in_a_turn, kExtentsPerBatch);
  }
};

// Somebody may still read behind the end, so the memory stays.
struct ATailThatIsRead : ADirtyTail {
  void SetUp() override {
    ADirtyTail::SetUp();
    hold(kReader, 1, {0, 2 * kStride}, false);
    hold(kBob, 2, {kStride, 2 * kStride}, true);
  }
};

TEST_F(ATailThatIsRead, IsZeroedABatchATurn) {
  dies(kBob);
  pass();
  expect_bounded();
  EXPECT_FALSE(is_dirty());
  ASSERT_EQ(world.extents(file).size(), kExtents);
  EXPECT_EQ(byte_of(0), own);
  for (uint64_t i = 1; i < kExtents; ++i) ASSERT_EQ(byte_of(i), std::byte{0}) << i;
}

TEST_F(ATailThatIsRead, IsCleanOnRecordWhenTheLastBatchIs) {
  at_second_zeroing = [&] { EXPECT_TRUE(is_dirty()); };
  dies(kBob);
  pass();
  EXPECT_GE(world.brick.count("zero"), kExtents / kExtentsPerBatch);
  EXPECT_FALSE(is_dirty());
}

TEST_F(ATailThatIsRead, IsZeroedAgainAfterACrashBetweenTwoBatches) {
  at_second_zeroing = [&] { world.brick.dead = true; };
  dies(kBob);
  pass();
  EXPECT_TRUE(is_dirty());
  world.crash();
  world.start();
  pass();
  EXPECT_FALSE(is_dirty());
  EXPECT_EQ(byte_of(0), own);
  world.check("restarted");
}

TEST_F(ATailThatIsRead, LosesNothingToWhichTheFileGrowsMeanwhile) {
  at_second_zeroing = [&] { ASSERT_TRUE(world.names->update(file, {.size = (kExtents - 1) * kStride + 1})); };
  dies(kBob);
  pass();
  EXPECT_EQ(byte_of(kExtents - 1), own);
  EXPECT_FALSE(is_dirty());
}

// Of what a writer left who has gone, what another one may write.
struct ATailOfTwo : ADirtyTail {
  static constexpr uint64_t kStep = 3;  // of those that Alice may write
  void SetUp() override {
    ADirtyTail::SetUp();
    hold_all_extents(kAlice, kStep);
    hold_all_extents(kBob, 1);
  }
};

TEST_F(ATailOfTwo, IsZeroedABatchATurnWhereNobodyWrites) {
  dies(kBob);
  pass();
  expect_bounded();
  EXPECT_TRUE(is_dirty()) << "Alice goes on";
  for (uint64_t i = 1; i < kExtents; ++i) ASSERT_EQ(byte_of(i), i % kStep == 0 ? own : std::byte{0}) << i;
}

// Each batch looks anew at who writes.
TEST_F(ATailOfTwo, IsZeroedWhenTheOtherGoesBetweenTwoBatches) {
  at_second_zeroing = [&] { dies(kAlice); };
  dies(kBob);
  pass();
  EXPECT_FALSE(is_dirty());
  world.check("both have gone");
}

// Bytes that two could write are the second one's when the first has gone, and are zeroed when he leaves them.
TEST_F(ATailOfTwo, IsHisWhoGoesOn) {
  hold_all_extents(kReader, 1);
  const LayoutStateid stateid = table().find(file, kReader)->advance();
  const uint64_t end = (kExtents / 2) * kStride;
  dies(kBob);
  world.settle();
  EXPECT_EQ(world.commit(kReader, file, stateid, {0, end + kGrainSize}, end), Status::kOk)
      << "it waits for nothing";
  pass();
  expect_bounded();
  for (uint64_t i = 0; i < kExtents; ++i) ASSERT_EQ(byte_of(i), own) << i;
  dies(kAlice);
  dies(kReader);
  pass();
  EXPECT_FALSE(is_dirty());
  world.check("all have gone");
}

TEST_F(ATailOfTwo, DelaysAGrowthOverWhatIsNotZeroedYet) {
  const uint64_t end = (kExtents - 1) * kStride;
  ASSERT_EQ((kExtents - 1) % kStep, 0u) << "Alice's";
  const LayoutStateid stateid = table().find(file, kAlice)->advance();
  std::optional<LayoutCommitter::Answer> early;
  at_second_zeroing = [&] {
    CommitRequest request{
        .client = kAlice, .inode = file, .stateid = stateid, .range = {0, end + kGrainSize}};
    request.last_write_offset = end;
    world.mds->committer().commit(request, [&](LayoutCommitter::Answer got) { early = got; });
  };
  dies(kBob);
  pass();
  ASSERT_TRUE(early);
  EXPECT_EQ(early->error(), Status::kDelay);
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, end + kGrainSize}, end), Status::kOk);
  EXPECT_EQ(world.stat(file)->size, end + 1);
  EXPECT_EQ(world.read(file, kStride, 1), std::string(1, '\0'));
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
