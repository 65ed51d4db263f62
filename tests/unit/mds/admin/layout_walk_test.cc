// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/layout_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

namespace pnfsrdma::mds {
namespace {

class LayoutWalkTest : public ::testing::Test {
 protected:
  void hold(uint64_t client, uint64_t files, size_t grants = 0) {
    for (uint64_t file = 1; file <= files; ++file) {
      std::array<std::byte, 12> other{};
      other[0] = static_cast<std::byte>(client);
      store_big_endian(other.data() + 4, file);
      HeldLayout& layout = table_.add(file, client, other);
      for (uint64_t i = 0; i < grants; ++i)
        table_.add_grant(layout, {.grant = i, .file = {i * 4096, (i + 1) * 4096}});
    }
  }
  // The turns that it takes behind the first call.
  size_t walk(uint64_t client, const std::function<void(const HeldLayout&)>& visit) {
    bool ended = false;
    walk_layouts(loop_, table_, client, alive_, visit, [&] { ended = true; });
    size_t turns = 0;
    for (; !ended && turns < 100; ++turns) {
      most_ = std::max(most_, std::exchange(this_turn_, 0));
      loop_.run_once(Milliseconds(0));
    }
    most_ = std::max(most_, this_turn_);
    EXPECT_TRUE(ended);
    return turns;
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  LayoutTable table_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  std::set<std::pair<uint64_t, uint64_t>> seen_;
  size_t this_turn_ = 0;
  size_t most_ = 0;
  const std::function<void(const HeldLayout&)> see_ = [this](const HeldLayout& layout) {
    EXPECT_TRUE(seen_.emplace(layout.client(), layout.inode()).second);
    ++this_turn_;
  };
};

TEST_F(LayoutWalkTest, VisitsEachLayoutOnceSoManyATurn) {
  hold(1, 2 * kLayoutsPerTurn + 5);
  hold(2, 3);
  hold(3, kLayoutsPerTurn);
  EXPECT_GE(walk(0, see_), 3u);
  EXPECT_EQ(seen_.size(), 3 * kLayoutsPerTurn + 8);
  EXPECT_EQ(most_, kLayoutsPerTurn);
}

TEST_F(LayoutWalkTest, VisitsFewerThatHaveManyGrants) {
  constexpr size_t kCost = 4;  // of each
  hold(1, kLayoutsPerTurn, (kCost - 1) * kGrantsAsOneLayout);
  hold(2, 1, 3 * kLayoutsPerTurn * kGrantsAsOneLayout);
  walk(0, see_);
  EXPECT_EQ(seen_.size(), kLayoutsPerTurn + 1);
  EXPECT_LE(most_, kLayoutsPerTurn / kCost + 1)
      << "or the one with more than a turn may have, and some beside it";
}

TEST_F(LayoutWalkTest, OfOneClientOnlyHis) {
  hold(1, 10);
  hold(2, 7);
  EXPECT_EQ(walk(2, see_), 0u);
  EXPECT_EQ(seen_.size(), 7u);
}

TEST_F(LayoutWalkTest, TheVisitorMayEndThem) {
  hold(1, 3 * kLayoutsPerTurn);
  walk(0, [&](const HeldLayout& layout) {
    see_(layout);
    table_.erase(layout.inode(), layout.client());
  });
  EXPECT_EQ(seen_.size(), 3 * kLayoutsPerTurn);
  EXPECT_EQ(table_.layouts(), 0u);
}

TEST_F(LayoutWalkTest, EndsWithItsOwner) {
  hold(1, 3 * kLayoutsPerTurn);
  walk_layouts(loop_, table_, 0, alive_, see_, [] { FAIL() << "its owner has gone"; });
  alive_.reset();
  for (int turn = 0; turn < 5; ++turn) loop_.run_once(Milliseconds(0));
  EXPECT_EQ(seen_.size(), kLayoutsPerTurn);
}

}  // namespace
}  // namespace pnfsrdma::mds
