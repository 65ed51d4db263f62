// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/mds_lease.h"

#include <gtest/gtest.h>

#include "tests/doubles/manual_clock.h"

namespace pnfsrdma::brick {
namespace {

class MdsLeaseTest : public testing::Test {
 protected:
  void pass(Milliseconds time) {
    clock_.advance(time);
    loop_.run_once(Milliseconds(0));
  }

  ManualClock clock_;
  EventLoop loop_{clock_};
  int expired_ = 0;
  MdsLease lease_{loop_, Milliseconds(30'000), [this] { ++expired_; }};
};

TEST_F(MdsLeaseTest, RunsOutOnce) {
  lease_.renew();
  pass(Milliseconds(29'000));
  EXPECT_EQ(expired_, 0);
  pass(Milliseconds(1'000));
  EXPECT_EQ(expired_, 1);
  pass(Milliseconds(30'000));
  EXPECT_EQ(expired_, 1);
}

TEST_F(MdsLeaseTest, ACallLengthensIt) {
  lease_.renew();
  pass(Milliseconds(20'000));
  lease_.renew();
  pass(Milliseconds(10'000));
  EXPECT_EQ(expired_, 0);
  pass(Milliseconds(20'000));
  EXPECT_EQ(expired_, 1);
}

TEST_F(MdsLeaseTest, ABrickThatStoodStillHearsWhatWasSaidMeanwhile) {
  lease_.renew();
  pass(Milliseconds(70'000));
  EXPECT_EQ(expired_, 0);
  lease_.renew();  // it was in the socket
  pass(Milliseconds(29'000));
  EXPECT_EQ(expired_, 0);
}

TEST_F(MdsLeaseTest, ABrickThatStoodStillGivesUpAnMdsThatDied) {
  lease_.renew();
  pass(Milliseconds(70'000));
  pass(Milliseconds(1'000));
  EXPECT_EQ(expired_, 1);
}

}  // namespace
}  // namespace pnfsrdma::brick
