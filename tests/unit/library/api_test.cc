// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>

#include "library/pnfsrdma.h"

namespace {

TEST(Interface, ANullPointerIsRefusedAndNotFollowed) {
  pnfsrdma_event event;
  EXPECT_EQ(pnfsrdma_watch_fd(nullptr), -EINVAL);
  EXPECT_EQ(pnfsrdma_watch_next(nullptr, &event, 0), -EINVAL);
  pnfsrdma_watch_destroy(nullptr);
  EXPECT_EQ(pnfsrdma_signal(nullptr, 0, 1, 1), -EINVAL);
  EXPECT_EQ(pnfsrdma_queue_fd(nullptr), -EINVAL);
  EXPECT_EQ(pnfsrdma_map_address(nullptr), nullptr);
}

TEST(Interface, OfBlocksRefusesNullPointersAndNamesThatAreNone) {
  pnfsrdma_blocks* blocks = nullptr;
  EXPECT_EQ(pnfsrdma_blocks_open("127.0.0.1:1", "tank", nullptr, nullptr, &blocks), -EINVAL);
  EXPECT_EQ(pnfsrdma_blocks_open("127.0.0.1:1", "tank", "/nowhere", nullptr, nullptr), -EINVAL);
  EXPECT_EQ(pnfsrdma_blocks_open("127.0.0.1:1", "../tank", "/nowhere", nullptr, &blocks), -EINVAL);
  EXPECT_EQ(pnfsrdma_blocks_open("127.0.0.1:1", "tank", "/nowhere", "port=3", &blocks), -EINVAL);
  EXPECT_EQ(pnfsrdma_blocks_open("127.0.0.1:1", "tank", "/nowhere", nullptr, &blocks), -ENOENT);
  EXPECT_EQ(pnfsrdma_blocks_close(nullptr), -EINVAL);
  EXPECT_EQ(pnfsrdma_blocks_free(nullptr, 0, 1), -EINVAL);
  EXPECT_EQ(pnfsrdma_mapping_flush(nullptr, 0, 1), -EINVAL);
  EXPECT_EQ(pnfsrdma_mapping_release(nullptr), -EINVAL);
}

}  // namespace
