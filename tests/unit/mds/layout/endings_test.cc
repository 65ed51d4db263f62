// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/endings.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace pnfsrdma::mds::testing {
namespace {

constexpr uint64_t kClient = 7;
constexpr uint64_t kFile = 42;
constexpr StateidOther kStateid{std::byte{3}};

class EndingsTest : public ::testing::Test {
 protected:
  std::set<BrickNumber> away;
  Endings endings{[this](BrickNumber brick) { return !away.contains(brick); }};
  std::string told;
  uint64_t next_piece = 1;

  DyingPointer piece_of(BrickNumber brick, const ByteRange& file = {0, 4096}) {
    auto piece = std::make_shared<DyingGrants>(DyingGrants{.number = next_piece++, .brick = brick});
    piece->hull = file;
    return piece;
  }
  EndingPointer add(std::vector<DyingPointer> pieces) {
    Ending ending{.client = kClient, .inode = kFile, .stateid = kStateid, .pieces = std::move(pieces)};
    return endings.add(std::move(ending), [this] { told += "over "; });
  }
  void die(Ending& ending, size_t piece) {
    ++ending.dead;
    endings.died(ending, *ending.pieces[piece]);
  }
  Join waiter() {
    return Join([this] { told += "waiter "; });
  }
};

TEST_F(EndingsTest, ItIsOverWhenAllIsDead) {
  const EndingPointer ending = add({piece_of(1), piece_of(2)});
  endings.begun(*ending);
  die(*ending, 0);
  EXPECT_TRUE(endings.has(kClient, kStateid));
  EXPECT_FALSE(endings.has(kClient + 1, kStateid));
  endings.begun(*ending);
  EXPECT_EQ(told, "");
  die(*ending, 1);
  EXPECT_EQ(told, "over ");
  EXPECT_FALSE(endings.has(kClient, kStateid));
}

TEST_F(EndingsTest, OrWhenTheBricksOfWhatIsLeftAreAway) {
  const EndingPointer ending = add({piece_of(1), piece_of(2)});
  endings.begun(*ending);
  endings.begun(*ending);
  away = {2};
  Endings::Place place;
  EXPECT_EQ(endings.brick_lost(2, place, 10), 1u);
  EXPECT_EQ(told, "");
  die(*ending, 0);
  EXPECT_EQ(told, "over ");
  // Once.
  away = {};
  die(*ending, 1);
  EXPECT_EQ(told, "over ");
}

TEST_F(EndingsTest, ButNotBeforeAllIsOffTheRecord) {
  away = {1};
  const EndingPointer ending = add({piece_of(1), piece_of(1)});
  endings.begun(*ending);
  EXPECT_EQ(told, "");
  endings.begun(*ending);
  EXPECT_EQ(told, "over ");
}

TEST_F(EndingsTest, WithoutAHandleItIsOverWhenThatIsKnown) {
  const EndingPointer ending = add({});
  endings.begun(*ending);
  EXPECT_EQ(told, "");
  die(*ending, 0);
  EXPECT_EQ(told, "over ");
}

TEST_F(EndingsTest, WhoReturnsItAgainWaitsForWhatHeOverlaps) {
  const EndingPointer ending = add({piece_of(1, {4096, 8192})});
  endings.begun(*ending);
  const Join beside = waiter();
  endings.join(kClient, kFile, {0, 4096}, beside);
  endings.join(kClient, kFile + 1, {4096, 8192}, beside);
  endings.join(kClient + 1, beside);
  beside.end();
  EXPECT_EQ(told, "waiter ");
  const Join there = waiter();
  endings.join(kClient, kFile, {8000, 9000}, there);
  there.end();
  const Join all = waiter();
  endings.join(kClient, all);
  all.end();
  EXPECT_EQ(told, "waiter ");
  die(*ending, 0);
  EXPECT_EQ(told, "waiter over waiter waiter ");
  const Join later = waiter();
  endings.join(kClient, later);
  later.end();
  EXPECT_EQ(told, "waiter over waiter waiter waiter ");
}

TEST_F(EndingsTest, ALostBrickIsLookedForSoManyATime) {
  std::vector<EndingPointer> all;
  for (int i = 0; i < 5; ++i) {
    Ending ending{.client = kClient, .inode = kFile, .pieces = {piece_of(1 + i % 2)}};
    all.push_back(endings.add(std::move(ending), [this, i] { told += std::to_string(i); }));
    endings.begun(*all.back());
  }
  away = {1};
  Endings::Place place;
  EXPECT_EQ(endings.brick_lost(1, place, 2), 2u);
  EXPECT_EQ(told, "0");
  EXPECT_EQ(endings.brick_lost(1, place, 100), 3u);
  EXPECT_EQ(told, "024");
  EXPECT_EQ(endings.brick_lost(1, place, 100), 0u);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
