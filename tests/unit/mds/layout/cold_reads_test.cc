// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

// Files whose extents are not in memory.
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;
using Stable = nfs4::StableHow;

class ColdExtents : public ::testing::Test {
 protected:
  // Some data, a hole, some data.
  ColdExtents() : file_(world_.create("f")) {
    EXPECT_EQ(world_.write(file_, 0, "hello"), Status::kOk);
    EXPECT_EQ(world_.write(file_, 3 * kSparseUnit, "world"), Status::kOk);
    world_.store.rows_fetched = 1;
    world_.store.go_cold();
  }
  ~ColdExtents() override { world_.store.go_warm(); }
  uint64_t blocking() const { return world_.store.read_counts().blocking; }

  LayoutWorld world_;
  const InodeId file_;
};

TEST_F(ColdExtents, AReadWaitsForThemBesideTheLoop) {
  const uint64_t before = blocking();
  EXPECT_EQ(world_.read(file_, 0, 5), "hello");
  EXPECT_EQ(world_.read(file_, 3 * kSparseUnit, 100), "world");
  EXPECT_EQ(world_.read(file_, kSparseUnit, 3), std::string(3, '\0'));
  EXPECT_EQ(world_.read(file_, 0, 4 * kSparseUnit).size(), 3 * kSparseUnit + 5);
  EXPECT_EQ(blocking(), before);
}

TEST_F(ColdExtents, ALayoutToReadByWaitsForThemBesideTheLoop) {
  const uint64_t before = blocking();
  const auto answer = world_.get(kAlice, file_, IoMode::kRead, 0, 4 * kSparseUnit);
  ASSERT_TRUE(answer);
  EXPECT_EQ(world_.segments(answer).size(), 3u);
  // The holes are told by the same extents when the bricks have answered. An engine has them in memory then.
  EXPECT_LE(blocking(), before + 1);
}

TEST_F(ColdExtents, AClientThatIsGoneMeanwhileGetsNoLayout) {
  std::optional<LayoutGranter::Answer> answer;
  world_.mds->granter().grant({.client = kAlice,
                               .inode = file_,
                               .mode = IoMode::kRead,
                               .range = {kSparseUnit, 2 * kSparseUnit},
                               .min_length = 1,
                               .max_bytes = 65536},
                              [&](LayoutGranter::Answer got) { answer = std::move(got); });
  EXPECT_FALSE(answer);
  world_.mds->conflicts().on_client_gone(kAlice, [] {});
  world_.settle();
  ASSERT_TRUE(answer);
  EXPECT_FALSE(*answer);
  EXPECT_EQ(world_.mds->table().find(file_, kAlice), nullptr);
}

TEST_F(ColdExtents, WritesAndLayoutsToWriteByAreTheSame) {
  EXPECT_EQ(world_.write(file_, 0, "HELLO"), Status::kOk);
  EXPECT_EQ(world_.write(file_, kSparseUnit, "between"), Status::kOk);
  const auto answer = world_.get(kAlice, file_, IoMode::kReadWrite, 0, 4096);
  ASSERT_TRUE(answer);
  EXPECT_EQ(world_.segments(answer).size(), 1u);
  EXPECT_TRUE(world_.give_back(kAlice, file_));
  EXPECT_EQ(world_.set_size(file_, 3), Status::kOk);
  world_.store.go_warm();
  EXPECT_EQ(world_.read(file_, 0, 100), "HEL");
}

TEST_F(ColdExtents, TheServerMayEndMeanwhile) {
  world_.mds->io().read(file_, 0, 5, [](const std::expected<FileIo::Read, Status>&) { FAIL(); });
  world_.mds->io().write({.client = kBob, .inode = file_, .data = std::make_shared<const Bytes>(5)},
                         [](const std::expected<nfs4::WriteResult, Status>&) { FAIL(); });
  world_.stop();
  world_.store.go_warm();
  world_.start();
  EXPECT_EQ(world_.read(file_, 0, 5), "hello");
}

// Every row has to be fetched each time it is read, but for what was read or changed last.
class NothingAtHand : public ::testing::Test {
 protected:
  NothingAtHand() {
    world_.stop();
    world_.options = {.cached_inodes = 1, .cached_names = 1};
    world_.start();
    world_.obey_recalls();
    for (const char* name : {"a", "b", "c"}) files_.push_back(world_.create(name));
    for (const InodeId file : files_) EXPECT_EQ(world_.write(file, 0, text(file, 10'000)), Status::kOk);
    world_.store.rows_fetched = 1;
    world_.store.go_cold();
    before_ = blocking();
  }
  // Not only of the test itself.
  ~NothingAtHand() override {
    EXPECT_EQ(blocking(), before_);
    world_.store.go_warm();
    world_.check("in the end");
  }
  uint64_t blocking() const { return world_.store.read_counts().blocking; }
  // What LayoutWorld::check() looks for in a file.
  static std::string text(InodeId file, size_t length) {
    return std::string(length, static_cast<char>('A' + file % 26));
  }
  LayoutGranter::Answer write_layout(uint64_t client, InodeId file, uint64_t offset = 0) {
    return world_.get(client, file, IoMode::kReadWrite, offset, 1 << 20, 1 << 16);
  }
  uint64_t size_of(InodeId file) {
    world_.store.go_warm();
    const uint64_t size = world_.stat(file)->size;
    world_.store.go_cold();
    return size;
  }

  LayoutWorld world_;
  std::vector<InodeId> files_;
  uint64_t before_ = 0;
};

TEST_F(NothingAtHand, AWriteThroughTheServerReadsBesideTheLoop) {
  for (const InodeId file : files_) {
    EXPECT_EQ(world_.write(file, 5'000, text(file, 10'000), Stable::kUnstable), Status::kOk);
    EXPECT_EQ(world_.write(file, 3 * kSparseUnit, text(file, 100)), Status::kOk);
    EXPECT_EQ(world_.write(file, 3 * kSparseUnit, text(file, 50)), Status::kOk);
    EXPECT_TRUE(world_.commit(file));
    EXPECT_EQ(world_.read(file, 14'999, 2), text(file, 1) + '\0');
  }
}

TEST_F(NothingAtHand, AWriteOverMemoryLooksUpItsPlaceOnce) {
  ASSERT_EQ(world_.write(files_[0], 0, text(files_[0], 3)), Status::kOk);
  const uint64_t before = world_.store.read_counts().misses;
  EXPECT_EQ(world_.write(files_[0], 0, text(files_[0], 4)), Status::kOk);
  EXPECT_EQ(world_.store.read_counts().misses, before + 1);
}

TEST_F(NothingAtHand, ALayoutsWholeLifeReadsBesideTheLoop) {
  for (const InodeId file : files_) {
    const auto answer = write_layout(kAlice, file);
    ASSERT_TRUE(answer);
    const auto stateid = world_.stateid_of(answer);
    EXPECT_EQ(world_.commit(kAlice, file, stateid, {0, 1 << 20}, 19'999, {{0, 4096}}), Status::kOk);
    EXPECT_EQ(world_.commit(kAlice, file, stateid, {0, 1 << 20}, 100), Status::kOk);
    EXPECT_TRUE(world_.get(kBob, file, IoMode::kRead, 0, 1 << 20));
    EXPECT_TRUE(world_.give_back(kAlice, file));
    EXPECT_EQ(size_of(file), 20'000U);
  }
}

TEST_F(NothingAtHand, ATruncationReadsBesideTheLoop) {
  for (const InodeId file : files_) {
    EXPECT_TRUE(write_layout(kAlice, file));
    EXPECT_EQ(world_.set_size(file, 30'000), Status::kOk);
    EXPECT_TRUE(write_layout(kAlice, file));
    EXPECT_EQ(world_.set_size(file, 5), Status::kOk);
    EXPECT_EQ(world_.set_size(file, 50), Status::kOk);
    EXPECT_EQ(world_.read(file, 0, 100), text(file, 5) + std::string(45, '\0'));
  }
}

TEST_F(NothingAtHand, ALastCloseGivesBackWhatIsAheadWithoutAWait) {
  for (const InodeId file : files_) {
    EXPECT_TRUE(write_layout(kAlice, file, 8 << 20));
    EXPECT_TRUE(world_.give_back(kAlice, file));
  }
  bool begun = false;
  world_.mds->conflicts().on_last_close(files_, [&] { begun = true; });
  EXPECT_FALSE(begun);
  world_.settle();
  EXPECT_TRUE(begun);
  for (const InodeId file : files_) {
    world_.store.go_warm();
    EXPECT_EQ(world_.extents(file).size(), 1U);
    world_.store.go_cold();
  }
}

TEST_F(NothingAtHand, AClientsEndReadsBesideTheLoop) {
  for (const InodeId file : files_) EXPECT_TRUE(write_layout(kAlice, file));
  bool gone = false;
  world_.mds->conflicts().on_client_gone(kAlice, [&] { gone = true; });
  world_.settle();
  EXPECT_TRUE(gone);
  for (const InodeId file : files_) EXPECT_FALSE(world_.mds->table().in_use(file));
  world_.pass(Milliseconds(2 * brick::kQuarantineMs));
  for (const InodeId file : files_) EXPECT_EQ(world_.set_size(file, 30'000), Status::kOk);
}

TEST_F(NothingAtHand, ARemovedFileGoesWithoutAWait) {
  for (const char* name : {"a", "b", "c"}) {
    world_.store.go_warm();
    world_.recaller.opens.insert({files_.front(), kAlice});
    ASSERT_TRUE(world_.names->remove(kRootInode, name));
    world_.recaller.opens.clear();
    world_.store.go_cold();
    world_.mds->conflicts().on_orphaned(files_.front());
    world_.settle();
    world_.store.go_warm();
    EXPECT_FALSE(world_.names->get(files_.front()));
    world_.store.go_cold();
    files_.erase(files_.begin());
  }
}

TEST_F(NothingAtHand, ABricksWayBackReadsBesideTheLoop) {
  for (const InodeId file : files_) EXPECT_TRUE(write_layout(kAlice, file));
  world_.plug.down(world_.kBrick);
  world_.settle();
  EXPECT_EQ(world_.write(files_[0], 0, "absent"), Status::kDelay);
  EXPECT_FALSE(write_layout(kBob, files_[1]));
  EXPECT_EQ(world_.set_size(files_[2], 5), Status::kDelay);
  world_.plug.up(world_.kBrick);
  world_.settle();
  world_.pass(Milliseconds(2 * brick::kQuarantineMs));
  for (const InodeId file : files_) EXPECT_TRUE(write_layout(kBob, file));
}

// Writers that the last run left, their dirty tails, a file that was being removed: only opening the store
// itself waits for it.
TEST_F(NothingAtHand, WhatTheLastRunLeftIsReadBesideTheLoop) {
  for (const InodeId file : files_) EXPECT_TRUE(write_layout(kAlice, file));
  world_.store.go_warm();
  world_.recaller.opens.insert({files_[0], kAlice});
  ASSERT_TRUE(world_.names->remove(kRootInode, "a"));
  world_.unknown = {kAlice};
  world_.crash();
  world_.build();
  world_.store.go_cold();
  world_.plug.up(world_.kBrick);
  world_.settle();
  world_.pass(Milliseconds(2 * brick::kQuarantineMs));
  world_.store.go_warm();
  EXPECT_FALSE(world_.names->get(files_[0]));
  EXPECT_TRUE(Extents(world_.store).dirty_tails().value().empty());
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
