// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/initiator/file/data_path_fixture.h"

// Under a write delegation a small write is answered before it is sent.
namespace pnfsrdma::initiator {
namespace {

// Open, and delegated until that is taken away.
class DelegatedForAll final : public OpenStateSource {
 public:
  std::optional<OpenState> open_state(bool) override { return OpenState{}; }
  std::optional<OpenState> write_delegation() override {
    if (!delegated) return std::nullopt;
    OpenState state;
    state.stateid.other.fill(std::byte{stateid.load()});
    return state;
  }
  bool may_hold() override {
    if (during_look) std::exchange(during_look, nullptr)();
    return in_force;
  }
  std::atomic<bool> in_force = true;  // no longer: it is recalled
  std::atomic<bool> delegated = true;
  std::atomic<uint8_t> stateid = 0;
  std::function<void()> during_look;
};

class HeldWrite : public DataPathTest {
 protected:
  void SetUp() override {
    DataPathTest::SetUp();
    file = path->open(handle, delegated_, 0);
    file->set_thresholds(1 << 20, 1 << 20);
    cursor = file->error_cursor();
  }
  // The source goes before the file.
  void TearDown() override {
    file->release();
    DataPathTest::TearDown();
  }
  void hold(uint64_t offset, size_t length, uint8_t seed) {
    const int calls = channel.calls;
    const auto written = file->write(offset, filled(offset, length, seed), Stability::kMayBeHeld);
    ASSERT_TRUE(written) << written.error().to_string();
    EXPECT_EQ(*written, length);
    EXPECT_EQ(channel.calls, calls);
    EXPECT_TRUE(file->holds());
  }
  void expect_at_server(uint64_t offset, size_t length, uint8_t seed) {
    EXPECT_FALSE(file->holds());
    EXPECT_TRUE(DataPathTest::holds(brick.memory() + offset, offset, length, seed));
  }
  uint64_t lost() const { return path->statistics().lost_writes.value(); }

  DelegatedForAll delegated_;
};

TEST_F(HeldWrite, IsOneDurableWriteAtFsyncHoweverManyThereWere) {
  for (int i = 0; i < 10; ++i) hold(i * 500, 500, static_cast<uint8_t>(i));
  hold(100, 12, 77);
  EXPECT_EQ(file->size(), 5000u);
  EXPECT_TRUE(file->local_attributes().modified);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(channel.writes, 1);
  EXPECT_EQ(channel.commits, 0);
  for (int i = 1; i < 10; ++i) expect_at_server(i * 500, 500, static_cast<uint8_t>(i));
  expect_at_server(100, 12, 77);
  EXPECT_FALSE(file->local_attributes().modified);
  const int calls = channel.calls;
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.calls, calls);
}

TEST_F(HeldWrite, InSeveralPlacesIsCommittedBehindThem) {
  hold(0, 100, 1);
  hold(8192, 100, 2);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(channel.writes, 2);
  EXPECT_EQ(channel.commits, 1);
  expect_at_server(0, 100, 1);
  expect_at_server(8192, 100, 2);
}

TEST_F(HeldWrite, IsSentBeforeTheFileIsRead) {
  hold(0, 4096, 1);
  expect_read(0, 4096, 1);
  expect_at_server(0, 4096, 1);
}

TEST_F(HeldWrite, IsSentBeforeWhatMayNotBeHeld) {
  hold(0, 4096, 1);
  write(1000, 1000, 2);
  ASSERT_TRUE(file->fdatasync(cursor));
  expect_at_server(0, 1000, 1);
  expect_at_server(1000, 1000, 2);
  expect_at_server(2000, 2096, 1);
}

TEST_F(HeldWrite, IsSentByCloseAndByWhoIsToldOfTimes) {
  hold(0, 4096, 1);
  ASSERT_TRUE(file->close(cursor));
  expect_at_server(0, 4096, 1);
  hold(0, 4096, 2);
  ASSERT_TRUE(file->settle());
  expect_at_server(0, 4096, 2);
}

TEST_F(HeldWrite, IsSentAfterASecond) {
  hold(0, 4096, 1);
  const SteadyTime end = clock.now() + std::chrono::seconds(20);
  while (file->holds() && clock.now() < end) sleep_for(Milliseconds(10));
  expect_at_server(0, 4096, 1);
}

TEST_F(HeldWrite, IsCutBehindItsSending) {
  hold(0, 4096, 1);
  ASSERT_TRUE(file->truncating(1000));
  EXPECT_FALSE(file->holds());
  channel.size = 1000;
  (void)file->truncated(1000, true);
  EXPECT_EQ(file->size(), 1000u);
}

TEST_F(HeldWrite, LargeOnesAndThoseThatMustBeDurableAreNotHeld) {
  ASSERT_TRUE(file->write(kHeldEndMax - 100, filled(0, 101, 1), Stability::kMayBeHeld));
  EXPECT_FALSE(file->holds());
  ASSERT_TRUE(file->write(0, filled(0, 100, 1), Stability::kDataSync));
  EXPECT_FALSE(file->holds());
  ASSERT_TRUE(file->write(0, filled(0, 100, 1)));
  EXPECT_FALSE(file->holds());
}

TEST_F(HeldWrite, WithoutADelegationOrALeaseNothingIsHeld) {
  delegated_.in_force = false;
  ASSERT_TRUE(file->write(0, filled(0, 100, 1), Stability::kMayBeHeld));
  EXPECT_FALSE(file->holds());
  delegated_.in_force = true;
  channel.lease_over = true;
  ASSERT_TRUE(file->write(0, filled(0, 100, 1), Stability::kMayBeHeld));
  EXPECT_FALSE(file->holds());
}

// Whoever ends it may have looked for held data already.
TEST_F(HeldWrite, ADelegationThatEndsMeanwhileHasItSentAtOnce) {
  hold(0, 300, 1);
  delegated_.during_look = [this] { delegated_.during_look = [this] { delegated_.in_force = false; }; };
  ASSERT_TRUE(file->write(100, filled(100, 100, 2), Stability::kMayBeHeld));
  expect_at_server(100, 100, 2);
  ASSERT_TRUE(file->fdatasync(cursor));
  expect_at_server(0, 100, 1);
  expect_at_server(200, 100, 1);
  EXPECT_EQ(lost(), 0u);
}

TEST_F(HeldWrite, IsLostWithTheDelegationAndSaidOnce) {
  hold(0, 4096, 1);
  delegated_.in_force = delegated_.delegated = false;
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  EXPECT_FALSE(file->holds());
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.writes, 0);
  EXPECT_EQ(lost(), 1u);
}

// The server knows better than we whether it is revoked.
TEST_F(HeldWrite, IsLostWhenTheServerDoesNotKnowTheDelegation) {
  hold(0, 4096, 1);
  channel.known_open = 5;
  EXPECT_EQ(file->close(cursor).error().number(), EIO);
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(HeldWrite, GoesUnderTheDelegationThatWasReclaimed) {
  hold(0, 4096, 1);
  channel.known_open = 5;
  channel.during_renewal = [this] { delegated_.stateid = 5; };
  EXPECT_TRUE(file->fsync(cursor));
  expect_at_server(0, 4096, 1);
}

TEST_F(HeldWrite, WhatTheServerDoesNotTakeIsSaidByClose) {
  hold(0, 4096, 1);
  channel.refuse_writes = nfs4::Status::kNoSpc;
  EXPECT_EQ(file->close(cursor).error().number(), ENOSPC);
  EXPECT_FALSE(file->holds());
  channel.refuse_writes = nfs4::Status::kOk;
  EXPECT_FALSE(file->fsync(cursor));
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(HeldWrite, StaysThroughANewSessionAndIsReadByIt) {
  hold(0, 4096, 1);
  path->layouts_lost();
  expect_read(0, 4096, 1);
  expect_at_server(0, 4096, 1);
}

TEST_F(HeldWrite, OfAFileThatIsRemovedGoesNowhere) {
  hold(0, 4096, 1);
  file->inside().dirty.forget_unflushed();
  EXPECT_FALSE(file->holds());
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.writes, 0);
}

TEST_F(HeldWrite, WithoutRoomItIsSentAtOnce) {
  DataPathOptions options = options_now;
  options.unstable_bytes_max = 5000;
  path->abort();
  build(options);
  file = path->open(handle, delegated_, 0);
  file->set_thresholds(1 << 20, 1 << 20);
  cursor = file->error_cursor();
  hold(0, 4096, 1);
  ASSERT_TRUE(file->write(4096, filled(4096, 4096, 2), Stability::kMayBeHeld));
  expect_at_server(0, 4096, 1);
  expect_at_server(4096, 4096, 2);
}

}  // namespace
}  // namespace pnfsrdma::initiator
