// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

// What a brick has beside what files have there, when it comes back: a page of its blocks after the other.
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

struct BlocksCompared : ::testing::Test {
  static constexpr size_t kBlocks = 20;
  LayoutWorld world;
  InodeId file = world.create("f");

  void SetUp() override {
    ASSERT_EQ(world.write(file, 0, std::string(kBlocks * kBlock, static_cast<char>('A' + file % 26))),
              Status::kOk);
    ASSERT_EQ(world.brick.blocks.size(), kBlocks);
    world.brick.listed_at_once = 3;
  }
  void comes_back() {
    world.plug.down(world.kBrick);
    world.settle();
    world.plug.up(world.kBrick);
    world.settle();
    ASSERT_TRUE(world.mds->ready());
  }
  // The n-th of the file.
  uint64_t block(size_t n) { return *std::next(world.brick.blocks.begin(), static_cast<ptrdiff_t>(n)); }
};

TEST_F(BlocksCompared, AreListedInPages) {
  const size_t before = world.brick.count("list");
  comes_back();
  EXPECT_EQ(world.brick.count("list") - before, kBlocks / 3 + 1);
  world.check("back");
}

TEST_F(BlocksCompared, WhatNoFileHasIsFreedOnEachPage) {
  const uint64_t last = block(kBlocks - 1);
  const std::set<uint64_t> ours = world.brick.blocks;
  world.brick.blocks.insert(0);
  for (uint64_t i = 1; i < 6; ++i) world.brick.blocks.insert(last + i * kBlock);
  comes_back();
  EXPECT_EQ(world.brick.blocks, ours);
  world.check("back");
}

// It was compared as one that files have, and so it would stay.
TEST_F(BlocksCompared, WhatIsFreedBehindTheComparisonIsFreedOnTheBrick) {
  const uint64_t first = block(0);
  world.plug.down(world.kBrick);
  world.settle();
  const size_t before = world.brick.count("list");
  world.plug.up(world.kBrick);
  for (int i = 0; i < 100 && world.brick.count("list") < before + 3; ++i)
    world.loop.run_once(Milliseconds(0));
  ASSERT_FALSE(world.mds->ready());
  world.mds->bricks().free(world.space().free(first, kBlock));
  world.settle();
  EXPECT_TRUE(world.mds->ready());
  EXPECT_FALSE(world.brick.blocks.contains(first));
}

TEST_F(BlocksCompared, WaitUntilItIsKnownWhatFilesHave) {
  const InodeId other = world.create("other");
  ASSERT_EQ(world.write(other, 0, std::string(kBlock, 'x')), Status::kOk);
  world.crash();
  world.reads_space_beside = true;
  world.store.hold_views();
  world.start();
  EXPECT_FALSE(world.mds->ready());
  EXPECT_EQ(world.get(1, file, IoMode::kRead, 0, kBlock).error(), Status::kLayoutTryLater);
  // Removed meanwhile: the brick gets it back nevertheless.
  ASSERT_TRUE(world.names->remove(kRootInode, "other"));
  world.settle();
  world.store.release_views();
  while (!world.space().known()) world.loop.run_once(Milliseconds(1));
  world.settle();
  EXPECT_TRUE(world.mds->ready());
  EXPECT_TRUE(world.get(1, file, IoMode::kReadWrite, 0, kBlock));
  world.pass(Milliseconds(2 * brick::kQuarantineMs));
  EXPECT_EQ(world.brick.blocks.size(), kBlocks);
  world.check("known");
}

TEST_F(BlocksCompared, WhatIsMissingKeepsNobodyAway) {
  const uint64_t lost = block(4);
  world.brick.blocks.erase(lost);
  comes_back();
  EXPECT_EQ(world.brick.blocks.size(), kBlocks - 1);
  EXPECT_FALSE(world.brick.blocks.contains(lost));
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
