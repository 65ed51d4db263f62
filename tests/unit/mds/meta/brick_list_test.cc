// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/brick_list.h"

#include <gtest/gtest.h>

#include "server/mds/meta/format_version.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/shared_runs.h"
#include "server/mds/meta/values.h"
#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

class Bricks : public ::testing::Test {
 protected:
  void reopen() { list_ = BrickList::open(store_, clock_).value(); }
  void record(InodeId inode, uint64_t logical, uint64_t length = kGrainSize) {
    ExtentChange change(store_, inode);
    ASSERT_TRUE(change.insert({0, logical, length}));
    Batch batch;
    change.write_to(batch);
    ASSERT_TRUE(store_.commit(batch, CommitKind::kNamespace));
  }
  std::vector<std::string> addresses() {
    std::vector<std::string> found;
    for (const BrickNumber number : list_->numbers()) found.push_back(list_->find(number)->address);
    return found;
  }
  std::vector<std::string> configure(const std::vector<std::string>& named) {
    return list_->configure(named).value();
  }
  Result<uint64_t> take_blocks(BrickNumber brick, uint64_t count) {
    Space& space = list_->space(brick);
    space.set_capacity(UINT64_MAX / kGrainsPerBlock);
    TRY_ASSIGN(const Taken taken, space.take({.hard = count * kGrainsPerBlock}));
    return taken.fresh->logical;
  }
  uint64_t stored_format() {
    const auto stored = store_.get(meta_key("format")).value();
    return stored ? read_value<StoredNumber>(*stored, "format")->number : 0;
  }

  ManualClock clock_;
  EventLoop loop_{clock_};
  MemoryStore store_{loop_, MemoryStore::Syncing::kManual};
  std::unique_ptr<BrickList> list_ = BrickList::open(store_, clock_).value();
};

TEST_F(Bricks, AFirstStartTakesTheConfiguration) {
  EXPECT_TRUE(configure({"a", "b"}).empty());
  EXPECT_EQ(addresses(), (std::vector<std::string>{"a", "b"}));
  reopen();
  EXPECT_EQ(addresses(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(Bricks, LaterTheStoredListCounts) {
  configure({"a", "b"});
  ASSERT_TRUE(list_->add("c", false));
  reopen();
  EXPECT_EQ(configure({"a", "b", "d"}), std::vector<std::string>{"d"});
  EXPECT_EQ(addresses(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(Bricks, OneAddressThatChangedIsTheSameBrickMoved) {
  configure({"a", "b"});
  ASSERT_TRUE(list_->add("c", false));
  EXPECT_TRUE(configure({"a", "B"}).empty());
  EXPECT_EQ(addresses(), (std::vector<std::string>{"a", "B", "c"}));
}

TEST_F(Bricks, WhetherItWasReachedByTlsIsRemembered) {
  configure({"a", "b"});
  ASSERT_TRUE(list_->note_tls("a", true));
  ASSERT_TRUE(list_->note_tls("b", false));
  ASSERT_TRUE(list_->note_tls("nobody", true));
  EXPECT_TRUE(list_->tls_noted("a"));
  reopen();
  EXPECT_TRUE(list_->tls_noted("a"));
  EXPECT_FALSE(list_->tls_noted("b"));
  EXPECT_FALSE(list_->tls_noted("nobody"));
  configure({"a2", "b"});
  EXPECT_TRUE(list_->tls_noted("a2")) << "it has moved";
  ASSERT_TRUE(list_->note_tls("a2", false));
  reopen();
  EXPECT_FALSE(list_->tls_noted("a2"));
  EXPECT_EQ(stored_format(), kFormatBasic) << "older programs read it";
}

TEST_F(Bricks, ARemovedOneIsNotTakenAgain) {
  configure({"a", "b"});
  ASSERT_TRUE(list_->remove(2));
  reopen();
  EXPECT_EQ(configure({"a", "b"}), std::vector<std::string>{"b"});
  EXPECT_EQ(addresses(), std::vector<std::string>{"a"});
}

TEST_F(Bricks, AnAddressSaysWhichBrickItIsOn) {
  configure({"a", "b"});
  const uint64_t first = take_blocks(1, 1).value();
  const uint64_t second = take_blocks(2, 1).value();
  EXPECT_EQ(list_->brick_of(first), 1u);
  EXPECT_EQ(list_->brick_of(second), 2u);
  EXPECT_EQ(list_->brick_of(uint64_t{40} * kZoneBytes), kNoBrick);
  record(100, first);
  record(101, second);
  reopen();
  EXPECT_EQ(list_->space(1).used_blocks(), 1u);
  EXPECT_EQ(list_->space(2).used_blocks(), 1u);
}

TEST_F(Bricks, ABrickWhoseAddressesAreSpentGetsMore) {
  configure({"a", "b"});
  const uint64_t most = kBlocksPerZone - 2;
  const uint64_t first = take_blocks(1, most).value();
  const uint64_t second = take_blocks(1, 2).value();
  EXPECT_EQ(zone_of(first), 0u);
  EXPECT_EQ(zone_of(second), 2u);
  EXPECT_EQ(list_->brick_of(second), 1u);
  record(100, second);
  ASSERT_TRUE(store_.sync());
  store_.crash(0);
  reopen();
  EXPECT_EQ(list_->brick_of(second), 1u);
  EXPECT_GT(take_blocks(1, 1).value(), second);
  EXPECT_EQ(zone_of(take_blocks(2, 1).value()), 1u);
}

TEST_F(Bricks, AnExtentOnNoBrickIsDamage) {
  configure({"a"});
  record(100, 5 * kZoneBytes);
  const auto opened = BrickList::open(store_, clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number(), EUCLEAN);
}

TEST_F(Bricks, OneWithDataIsNotRemoved) {
  configure({"a"});
  ASSERT_TRUE(take_blocks(1, 1));
  EXPECT_EQ(list_->remove(1).error().number(), EBUSY);
  EXPECT_EQ(addresses(), std::vector<std::string>{"a"});
}

TEST_F(Bricks, NumbersAndZonesAreNotUsedAgain) {
  configure({"a", "b"});
  ASSERT_TRUE(list_->remove(2));
  reopen();
  const BrickNumber again = list_->add("b", false).value();
  EXPECT_EQ(again, 3u);
  EXPECT_EQ(zone_of(take_blocks(again, 1).value()), 2u);
}

TEST_F(Bricks, OneBrickIsNotInTheListTwice) {
  configure({"a", "b"});
  EXPECT_EQ(list_->add("a", false).error().number(), EEXIST);
  BrickRecord first = *list_->find(1);
  first.uuid[0] = std::byte{1};
  ASSERT_TRUE(list_->update(first));
  BrickRecord second = *list_->find(2);
  second.uuid = first.uuid;
  EXPECT_EQ(list_->update(second).error().number(), EEXIST);
}

class SpaceReadBeside : public Bricks {
 protected:
  void SetUp() override { configure({"a", "b"}); }
  ~SpaceReadBeside() override { store_.release_views(); }
  // What is in use is not known until release_views().
  void reopen_beside() {
    store_.hold_views();
    list_ = BrickList::open(store_, clock_, loop_, [this](const Error& error) { failed_ = error; }).value();
    for (const BrickNumber number : list_->numbers()) list_->space(number).set_capacity(64);
  }
  void wait() {
    store_.release_views();
    while (!known() && !failed_) loop_.run_once(Milliseconds(10));
  }
  bool known() const { return list_->space(1).known() && list_->space(2).known(); }
  void forget(InodeId inode) {
    ExtentChange change(store_, inode);
    ASSERT_TRUE(change.remove(0, UINT64_MAX));
    Batch batch;
    change.write_to(batch);
    ASSERT_TRUE(store_.commit(batch, CommitKind::kNamespace));
  }

  std::optional<Error> failed_;
};

TEST_F(SpaceReadBeside, NothingIsTakenOrRemovedBeforeItIsKnown) {
  const uint64_t first = take_blocks(1, 2).value();
  record(100, first, brick::kBlockSize);
  record(101, first + brick::kBlockSize, brick::kBlockSize);
  reopen_beside();
  Space& space = list_->space(1);
  bool told = false;
  list_->when_known([&] { told = true; });
  loop_.run_once(Milliseconds(0));
  EXPECT_EQ(space.take({.hard = 1}).error().number(), EAGAIN);
  EXPECT_EQ(list_->remove(1).error().number(), EBUSY);
  space.presume_free(50);
  EXPECT_EQ(space.used_blocks(), 14u);
  EXPECT_EQ(space.unused_bytes(), 50 * brick::kBlockSize);
  EXPECT_FALSE(told);
  wait();
  EXPECT_TRUE(told);
  EXPECT_EQ(space.used_blocks(), 2u);
  EXPECT_EQ(space.unused_bytes(), 62 * brick::kBlockSize);
  EXPECT_EQ(list_->remove(1).error().number(), EBUSY);
  EXPECT_TRUE(list_->remove(2));
  // Not an address that an extent has.
  EXPECT_GE(take_blocks(1, 1).value(), first + 2 * brick::kBlockSize);
}

TEST_F(SpaceReadBeside, WhatIsGivenBackMeanwhileIsFreeThen) {
  const uint64_t place = take_blocks(1, 3000).value();
  for (uint64_t i = 0; i < 3000; ++i) record(100 + i, place + i * brick::kBlockSize, brick::kBlockSize);
  reopen_beside();
  Space& space = list_->space(1);
  for (uint64_t i = 0; i < 2500; ++i) {
    forget(100 + i);
    EXPECT_TRUE(space.free(place + i * brick::kBlockSize, brick::kBlockSize).empty());
  }
  wait();
  EXPECT_EQ(space.used_blocks(), 500u);
  // The brick has them, and no extent.
  const SpaceDifference found = space.compare({{place, 3000}});
  EXPECT_EQ(found.leaked, (std::vector<brick::Run>{{place, 2500}}));
  EXPECT_TRUE(found.missing.empty());
}

TEST_F(SpaceReadBeside, ABrickThatIsAddedMeanwhileIsKnownAtOnce) {
  reopen_beside();
  const BrickNumber added = list_->add("c", false).value();
  EXPECT_TRUE(list_->space(added).known());
  wait();
  EXPECT_TRUE(take_blocks(added, 1));
}

TEST_F(SpaceReadBeside, DamageIsTold) {
  record(100, 5 * kZoneBytes);
  reopen_beside();
  wait();
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->number(), EUCLEAN);
  EXPECT_FALSE(known());
}

TEST_F(SpaceReadBeside, AShutdownDoesNotWaitForAllOfIt) {
  record(100, take_blocks(1, 1).value());
  reopen_beside();
  store_.release_views();
  list_->stop_reading();
  for (int i = 0; i < 3; ++i) loop_.run_once(Milliseconds(0));
  EXPECT_FALSE(known());
  EXPECT_FALSE(failed_);
}

// Several extents may have the same place where the store says so, and only there.
TEST_F(Bricks, SharedMemoryIsInUseOnce) {
  configure({"a"});
  const auto put = [&](InodeId file, uint64_t first_grain, uint64_t grains, SharedChange* shares) {
    Batch batch;
    ExtentChange extents(store_, file);
    ASSERT_TRUE(extents.insert({0, brick::kBlockSize + first_grain * kGrainSize, grains * kGrainSize}));
    extents.write_to(batch);
    if (shares != nullptr) shares->write_to(batch);
    ASSERT_TRUE(store_.commit(batch, CommitKind::kNamespace));
  };
  put(100, 0, 8, nullptr);
  SharedChange shares(store_);
  ASSERT_TRUE(shares.add({brick::kBlockSize + 4 * kGrainSize, 4 * kGrainSize}));
  put(101, 4, 8, &shares);
  reopen();
  EXPECT_EQ(list_->space(1).used_blocks(), 1u);
  EXPECT_EQ(list_->space(1).free_grain_bytes(), brick::kBlockSize - 12 * kGrainSize);
  put(102, 11, 1, nullptr);
  EXPECT_EQ(BrickList::open(store_, clock_).error().number(), EUCLEAN);
}

// An older program must not see shared memory, and what it may see must not hide that there is some.
TEST_F(Bricks, TheFormatGoesUpOnly) {
  configure({"a"});
  EXPECT_EQ(stored_format(), kFormatBasic);
  Batch batch;
  raise_format_version(batch, kFormatVersion);
  ASSERT_TRUE(store_.commit(batch, CommitKind::kNamespace));
  ASSERT_TRUE(list_->add("b", false));
  EXPECT_EQ(stored_format(), kFormatVersion);
}

// What a program of format 1 left: extents and its counter of addresses.
TEST_F(Bricks, AStoreOfOneBrickIsTakenOver) {
  Batch batch;
  put_value(batch, meta_key("format"), StoredNumber{1});
  put_value(batch, meta_key("next-block"), StoredNumber{70000});
  ASSERT_TRUE(store_.commit(batch, CommitKind::kNamespace));
  record(100, 5 * brick::kBlockSize);
  reopen();
  EXPECT_EQ(list_->numbers(), std::vector<BrickNumber>{1});
  EXPECT_EQ(list_->space(1).used_blocks(), 1u);
  EXPECT_EQ(stored_format(), 1u);  // only looked at
  EXPECT_TRUE(configure({"a", "b"}).empty());
  EXPECT_EQ(stored_format(), kFormatBasic);
  reopen();
  EXPECT_EQ(addresses(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(take_blocks(1, 1).value(), 70000 * brick::kBlockSize);
  EXPECT_EQ(zone_of(take_blocks(2, 1).value()), 1u);
}

}  // namespace
}  // namespace pnfsrdma::mds
