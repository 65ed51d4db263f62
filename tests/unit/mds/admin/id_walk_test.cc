// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/id_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace pnfsrdma::mds {
namespace {

class IdWalkTest : public ::testing::Test {
 protected:
  void walk(size_t count) {
    std::vector<uint64_t> ids(count);
    std::iota(ids.begin(), ids.end(), 1);
    walk_ids(
        loop_, ids, alive_,
        [this](uint64_t id) {
          seen_.push_back(id);
          ++this_turn_;
        },
        [this] { ended_ = true; });
  }
  void turn() {
    most_ = std::max(most_, std::exchange(this_turn_, 0));
    loop_.run_once(Milliseconds(0));
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  std::vector<uint64_t> seen_;
  size_t this_turn_ = 0;
  size_t most_ = 0;
  bool ended_ = false;
};

TEST_F(IdWalkTest, VisitsEachOnceAndInOrderSoManyATurn) {
  walk(2 * kIdsPerTurn + 1);
  EXPECT_EQ(seen_.size(), kIdsPerTurn) << "the first of them at once";
  for (int i = 0; i < 10 && !ended_; ++i) turn();
  EXPECT_TRUE(ended_);
  EXPECT_EQ(seen_.size(), 2 * kIdsPerTurn + 1);
  EXPECT_TRUE(std::ranges::is_sorted(seen_));
  EXPECT_EQ(most_, kIdsPerTurn);
}

TEST_F(IdWalkTest, OfNoneItEndsAtOnce) {
  walk(0);
  EXPECT_TRUE(ended_);
}

TEST_F(IdWalkTest, EndsWithWhoeverWantedIt) {
  walk(2 * kIdsPerTurn);
  alive_.reset();
  for (int i = 0; i < 10; ++i) turn();
  EXPECT_FALSE(ended_);
  EXPECT_EQ(seen_.size(), kIdsPerTurn);
}

}  // namespace
}  // namespace pnfsrdma::mds
