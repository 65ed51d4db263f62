// SPDX-License-Identifier: Apache-2.0
#include "server/mds/grants/layout_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "shared/base/random.h"

namespace pnfsrdma::mds {
namespace {

HeldGrant grant_of(uint64_t number) {
  return {.grant = number, .file = {0, 4096}, .logical = number * 4096};
}

BrickNumber one_brick(uint64_t) {
  return 1;
}

TEST(LayoutTable, APieceIsOfOneBrick) {
  LayoutTable table;
  std::vector<HeldGrant> grants;
  for (uint64_t number = 0; number < 2 * kGrantsPerPiece + 2; ++number) grants.push_back(grant_of(number));
  const auto pieces = table.begin_death(
      7, 1, std::move(grants), [](uint64_t logical) -> BrickNumber { return 1 + logical / 4096 % 2; });
  ASSERT_EQ(pieces.size(), 4u);
  for (const DyingPointer& piece : pieces) {
    for (const HeldGrant& grant : piece->grants) EXPECT_EQ(1 + grant.grant % 2, piece->brick);
  }
  EXPECT_EQ(pieces[0]->grants.size(), kGrantsPerPiece);
  EXPECT_EQ(pieces[3]->grants.size(), 1u);
}

TEST(LayoutTable, TheFilesWithDyingGrantsAreKnown) {
  LayoutTable table;
  EXPECT_TRUE(table.files_with_dying().empty());
  const auto first = table.begin_death(7, 1, {grant_of(1), grant_of(2)}, one_brick);
  const auto second = table.begin_death(7, 2, {grant_of(3)}, one_brick);
  EXPECT_TRUE(table.begin_death(8, 1, {}, one_brick).empty());
  EXPECT_EQ(table.files_with_dying(), std::vector<uint64_t>{7});
  std::vector<std::pair<uint64_t, uint64_t>> dying;
  table.for_each_dying(
      7, [&](uint64_t client, const HeldGrant& grant) { dying.emplace_back(client, grant.grant); });
  EXPECT_EQ(dying, (std::vector<std::pair<uint64_t, uint64_t>>{{1, 1}, {1, 2}, {2, 3}}));
  table.end_death(7, *first.front());
  EXPECT_EQ(table.files_with_dying(), std::vector<uint64_t>{7});
  table.end_death(7, *second.front());
  EXPECT_TRUE(table.files_with_dying().empty());
  EXPECT_FALSE(table.in_use(7));
}

// The table beside lists of what is held and what is dying, in which everything is looked up one by one. Of one file.
class DyingModel : public ::testing::Test {
 protected:
  static constexpr uint64_t kFile = 7;
  static constexpr uint64_t kClients = 3;
  static constexpr uint64_t kOffsets = 4000;

  uint64_t below(uint64_t end) { return random_.next_u64() % end; }
  ByteRange range() {
    const uint64_t begin = below(kOffsets);
    return {begin, begin + 1 + below(40)};
  }
  void grant() {
    const uint64_t client = 1 + below(kClients);
    std::array<std::byte, 12> other{};
    other[11] = static_cast<std::byte>(client);
    HeldLayout& layout = table_.add(kFile, client, other);
    for (uint64_t count = 1 + below(300); count > 0; --count) {
      HeldGrant grant{.grant = next_, .file = range(), .logical = next_ * 4096, .writable = below(4) == 0};
      ++next_;
      held_.emplace_back(client, grant);
      table_.add_grant(layout, grant);
    }
  }
  void give_back() {
    const uint64_t client = 1 + below(kClients);
    HeldLayout* layout = table_.find(kFile, client);
    if (layout == nullptr) return;
    auto dead = table_.give_back(*layout, {0, kEndOfFile}, IoMode::kAny);
    std::erase_if(held_, [&](const auto& each) { return each.first == client; });
    for (auto& piece : table_.begin_death(kFile, client, std::move(dead), one_brick)) {
      EXPECT_LE(piece->grants.size(), kGrantsPerPiece);
      dying_.push_back(std::move(piece));
    }
    table_.erase(kFile, client);
  }
  void die() {
    if (dying_.empty()) return;
    const size_t at = below(dying_.size());
    table_.end_death(kFile, *dying_[at]);
    dying_.erase(dying_.begin() + static_cast<ptrdiff_t>(at));
  }
  bool any(uint64_t client, const auto& is_so) {
    for (const auto& [holder, grant] : held_) {
      if ((client == 0 || holder == client) && is_so(grant)) return true;
    }
    for (const DyingPointer& piece : dying_) {
      if ((client == 0 || piece->client == client) && std::ranges::any_of(piece->grants, is_so)) return true;
    }
    return false;
  }
  void compare() {
    const uint64_t client = below(kClients + 1);
    const uint64_t offset = below(kOffsets + 50);
    ASSERT_EQ(table_.writable_past(kFile, offset, client),
              any(client, [&](const HeldGrant& grant) { return grant.writable && grant.file.end > offset; }));
    const ByteRange asked = range();
    ASSERT_EQ(table_.reachable(kFile, asked, client),
              any(client, [&](const HeldGrant& grant) { return grant.file.overlaps(asked); }));
    RangeSet bytes;
    bytes.add(asked);
    bytes = table_.out_of_reach(kFile, std::move(bytes));
    for (uint64_t at = asked.begin; at < asked.end; ++at) {
      ASSERT_EQ(bytes.contains({at, at + 1}), !any(0, [&](const HeldGrant& grant) {
                  return grant.writable && grant.file.begin <= at && at < grant.file.end;
                }));
    }
    ASSERT_EQ(table_.in_use(kFile), !held_.empty() || !dying_.empty());
  }

  SeededRandom random_{5};
  LayoutTable table_;
  uint64_t next_ = 1;
  std::vector<std::pair<uint64_t, HeldGrant>> held_;  // with its client
  std::vector<DyingPointer> dying_;
};

TEST_F(DyingModel, WhatIsDyingIsReachableUntilItsPieceIsDead) {
  for (int step = 0; step < 600; ++step) {
    switch (below(8)) {
      case 0:
        give_back();
        break;
      case 1:
      case 2:
        grant();
        break;
      default:
        die();
    }
    for (int look = 0; look < 5; ++look) compare();
    if (HasFailure()) FAIL() << "step " << step;
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
