// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/ring/arrivals.h"

#include <gtest/gtest.h>

namespace pnfsrdma::fuse_client {
namespace {

class ArrivalsTest : public ::testing::Test {
 protected:
  // Whose oldest had to go for it.
  std::optional<uid_t> add(uid_t user) {
    std::optional<uid_t> gone;
    if (const auto id = arrivals.in_the_way_of(user)) gone = arrivals.take(*id).user;
    arrivals.add(next_++, FileDescriptor(), user, now);
    return gone;
  }
  uint64_t next_ = 1;
  Arrivals arrivals;
  SteadyTime now{};
};

TEST_F(ArrivalsTest, AUserHasFewPlacesAndItsOldestGoesFirst) {
  for (size_t i = 0; i < Arrivals::kOfAUserMax; ++i) EXPECT_EQ(add(7), std::nullopt);
  EXPECT_EQ(add(7), uid_t{7});
  EXPECT_EQ(arrivals.find(1), nullptr);
  EXPECT_NE(arrivals.find(2), nullptr);
  EXPECT_EQ(add(8), std::nullopt);
}

TEST_F(ArrivalsTest, WhereAllPlacesAreTakenWhoeverHasMostMakesRoom) {
  for (uid_t user : {1, 2, 3}) {
    for (size_t i = 0; i < Arrivals::kOfAUserMax; ++i) EXPECT_EQ(add(user), std::nullopt);
  }
  for (size_t i = arrivals.size(); i < Arrivals::kMax; ++i) EXPECT_EQ(add(4 + uid_t(i)), std::nullopt);
  EXPECT_EQ(add(100), uid_t{1});
  EXPECT_EQ(add(100), uid_t{2});
  EXPECT_EQ(add(0), uid_t{3});
  EXPECT_EQ(arrivals.size(), Arrivals::kMax);
}

TEST_F(ArrivalsTest, TheySayWhoTheyAreOrGoInTime) {
  (void)add(1);
  now += Milliseconds(1);
  (void)add(2);
  EXPECT_EQ(arrivals.take(1).user, uid_t{1});
  EXPECT_EQ(arrivals.next_expiry(), now + Arrivals::kPatience);
  EXPECT_EQ(arrivals.expire(now + Arrivals::kPatience - Milliseconds(1)), 0u);
  EXPECT_EQ(arrivals.expire(now + Arrivals::kPatience), 1u);
  EXPECT_EQ(arrivals.next_expiry(), std::nullopt);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
