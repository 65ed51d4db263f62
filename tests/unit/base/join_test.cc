// SPDX-License-Identifier: Apache-2.0
#include "shared/base/join.h"

#include <gtest/gtest.h>

#include <optional>

namespace pnfsrdma {
namespace {

TEST(Join, EndsWithItsLastPart) {
  int ended = 0;
  const Join join([&] { ++ended; });
  const auto first = join.part();
  const auto second = join.part();
  join.end();
  second();
  EXPECT_EQ(ended, 0);
  first();
  EXPECT_EQ(ended, 1);
}

TEST(Join, PartsThatEndAtOnceDoNotEndItBeforeAllHaveBegun) {
  int ended = 0;
  const Join join([&] { ++ended; });
  join.part()();
  join.part()();
  EXPECT_EQ(ended, 0);
  join.end();
  EXPECT_EQ(ended, 1);
}

TEST(Join, NothingIsCalledForAPartThatWasDropped) {
  int ended = 0;
  {
    const Join join([&] { ++ended; });
    const std::optional dropped = join.part();
    join.end();
  }
  EXPECT_EQ(ended, 0);
}

TEST(Join, PartsOutlastTheJoin) {
  int ended = 0;
  std::optional<Join::Part> part;
  {
    const Join join([&] { ++ended; });
    part = join.part();
    join.end();
  }
  (*part)();
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace pnfsrdma
