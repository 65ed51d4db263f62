// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

// Files whose extents are not in memory.
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

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

}  // namespace
}  // namespace pnfsrdma::mds::testing
