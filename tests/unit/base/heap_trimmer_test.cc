// SPDX-License-Identifier: Apache-2.0
#include "shared/base/heap_trimmer.h"

#include <gtest/gtest.h>

namespace pnfsrdma {
namespace {

TEST(HeapTrimmer, TrimsForSomeTicksAfterMany) {
  HeapTrimmer trimmer(8192, 4);
  uint64_t freed = 8191;
  EXPECT_FALSE(trimmer.tick(freed));
  ++freed;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(trimmer.tick(freed));
  EXPECT_FALSE(trimmer.tick(freed));
  EXPECT_FALSE(trimmer.tick(freed + 8191));
  EXPECT_TRUE(trimmer.tick(freed + 8192));
}

}  // namespace
}  // namespace pnfsrdma
