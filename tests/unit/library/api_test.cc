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

}  // namespace
