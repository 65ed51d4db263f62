// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/second_opens.h"

#include <gtest/gtest.h>

#include "tests/doubles/manual_clock.h"

namespace pnfsrdma::fuse_client {
namespace {

TEST(SecondOpens, AreTheNextOpensOfWhoWasToldStale) {
  ManualClock clock;
  SecondOpens opens(clock);
  EXPECT_FALSE(opens.take(7));
  opens.expect(7);
  EXPECT_FALSE(opens.take(8));
  EXPECT_TRUE(opens.take(7));
  EXPECT_FALSE(opens.take(7));
}

TEST(SecondOpens, AreNotWaitedForLong) {
  ManualClock clock;
  SecondOpens opens(clock);
  opens.expect(7);
  clock.advance(SecondOpens::kSoon);
  EXPECT_FALSE(opens.take(7));
}

TEST(SecondOpens, HaveABound) {
  ManualClock clock;
  SecondOpens opens(clock);
  for (size_t i = 0; i <= SecondOpens::kExpectedMax; ++i) opens.expect(static_cast<pid_t>(i));
  EXPECT_FALSE(opens.take(0));
  EXPECT_TRUE(opens.take(SecondOpens::kExpectedMax));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
