// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/file_space.h"

#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

void remove(LayoutWorld& world, const std::string& name) {
  const auto removed = world.names->remove(kRootInode, name);
  ASSERT_TRUE(removed);
  if (removed->orphaned) world.mds->conflicts().on_orphaned(removed->inode->id);
  world.settle();
}

TEST(FileSpace, ABlockWhoseLastFileGoesWhileItsFreeGrainsAreZeroedIsGivenBack) {
  LayoutWorld world;
  ASSERT_EQ(world.write(world.create("a"), 0, "first"), Status::kOk);
  ASSERT_EQ(world.write(world.create("b"), 0, "second"), Status::kOk);
  ASSERT_EQ(world.brick.blocks.size(), 1u);
  remove(world, "a");
  world.brick.hold_zeroing = true;
  world.pass(Milliseconds(600));  // the freed grain has rested, its turn to be zeroed has come
  ASSERT_EQ(world.brick.count("zero"), 1u);
  remove(world, "b");
  EXPECT_EQ(world.brick.blocks.size(), 1u);  // the brick is still busy in it
  world.brick.release();
  world.settle();
  EXPECT_TRUE(world.brick.blocks.empty());
  EXPECT_EQ(world.space().used_blocks(), 0u);
  world.check("zeroed");
}

TEST(FileSpace, TwoSmallFilesThatAskForABlockAtOnceLeaveNoneEmpty) {
  LayoutWorld world;
  const InodeId a = world.create("a");
  const InodeId b = world.create("b");
  const auto bytes = std::make_shared<const Bytes>(100);
  int written = 0;
  for (const InodeId file : {a, b}) {
    world.mds->io().write({.client = kBob, .inode = file, .data = bytes},
                          [&](const auto& answer) { written += answer ? 1 : 0; });
  }
  world.settle();
  ASSERT_EQ(written, 2);
  world.check("written");
  remove(world, "a");
  remove(world, "b");
  EXPECT_TRUE(world.brick.blocks.empty());
  world.check("removed");
}

TEST(FileSpace, AFailedAllocationGivesTheBlockItHadTakenBack) {
  LayoutWorld world;
  const InodeId file = world.create("a");
  // The brick gives a block for small files; the commit of the extents then fails.
  world.brick.behind_call = [&] {
    if (world.brick.calls.back() == "alloc") world.store.before_commit = [] { return false; };
    return true;
  };
  const std::string text(4, static_cast<char>('A' + file % 26));
  EXPECT_NE(world.write(file, 0, text), Status::kOk);
  world.store.before_commit = [] { return true; };
  world.brick.behind_call = [] { return true; };
  world.settle();
  EXPECT_TRUE(world.brick.blocks.empty());
  EXPECT_EQ(world.space().used_blocks(), 0u);
  ASSERT_EQ(world.write(file, 0, text), Status::kOk);
  world.check("again");
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
