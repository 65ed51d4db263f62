// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/heap_trimmer.h"

#include <gtest/gtest.h>

namespace pnfsrdma::fuse_client {
namespace {

TEST(HeapTrimmer, TrimsForSomeTicksAfterMany) {
  HeapTrimmer trimmer;
  uint64_t forgotten = HeapTrimmer::kMany - 1;
  EXPECT_FALSE(trimmer.tick(forgotten));
  ++forgotten;
  for (int i = 0; i < HeapTrimmer::kTicks; ++i) EXPECT_TRUE(trimmer.tick(forgotten));
  EXPECT_FALSE(trimmer.tick(forgotten));
  EXPECT_FALSE(trimmer.tick(forgotten + HeapTrimmer::kMany - 1));
  EXPECT_TRUE(trimmer.tick(forgotten + HeapTrimmer::kMany));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
