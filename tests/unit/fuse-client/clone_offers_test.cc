// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/clone_offers.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "fuse-client/inode.h"
#include "tests/doubles/manual_clock.h"

namespace pnfsrdma::fuse_client {
namespace {

constexpr uid_t kUser = 1000;

class CloneOffersTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  CloneOffers offers_{clock_};
  std::shared_ptr<Inode> file_ = std::make_shared<Inode>(nfs4::FileHandle{}, 7);
};

TEST_F(CloneOffersTest, WhoeverHasTheSecretGetsTheFileOnce) {
  const auto secret = offers_.enter(file_, kUser);
  ASSERT_TRUE(secret);
  ring::Secret other = *secret;
  other[0] ^= 1;
  EXPECT_EQ(offers_.take(other), nullptr);
  EXPECT_EQ(offers_.take(*secret), file_);
  EXPECT_EQ(offers_.take(*secret), nullptr);
  EXPECT_NE(*offers_.enter(file_, kUser), *secret);
}

TEST_F(CloneOffersTest, AnOfferIsForTenSeconds) {
  const auto secret = offers_.enter(file_, kUser);
  clock_.advance(Milliseconds(9'999));
  const auto later = offers_.enter(file_, kUser);
  clock_.advance(Milliseconds(1));
  EXPECT_EQ(offers_.take(*secret), nullptr);
  EXPECT_EQ(offers_.take(*later), file_);
}

TEST_F(CloneOffersTest, ItKeepsNoFile) {
  const auto secret = offers_.enter(file_, kUser);
  file_.reset();
  EXPECT_EQ(offers_.take(*secret), nullptr);
}

TEST_F(CloneOffersTest, OneUserLeavesRoomForOthers) {
  for (size_t i = 0; i < CloneOffers::kOffersOfAUserMax; ++i) ASSERT_TRUE(offers_.enter(file_, kUser));
  EXPECT_EQ(offers_.enter(file_, kUser).error().number(), ENOSPC);
  EXPECT_TRUE(offers_.enter(file_, kUser + 1));
  clock_.advance(CloneOffers::kLifetime);
  EXPECT_TRUE(offers_.enter(file_, kUser));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
