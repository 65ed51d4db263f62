// SPDX-License-Identifier: Apache-2.0
#include "server/mds/grants/layout_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

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

TEST(LayoutTable, WhatIsDyingIsFoundPieceByPiece) {
  LayoutTable table;
  EXPECT_TRUE(table.dying().empty());
  EXPECT_EQ(table.newest_dying(), 0u);
  const auto first = table.begin_death(8, 1, {grant_of(1), grant_of(2)}, one_brick);
  const auto second = table.begin_death(7, 2, {grant_of(3)}, one_brick);
  EXPECT_TRUE(table.begin_death(9, 1, {}, one_brick).empty());
  EXPECT_EQ(table.dying(), (std::vector<DyingPointer>{first.front(), second.front()}));
  EXPECT_EQ(first.front()->inode, 8u);
  EXPECT_EQ(table.dying(0, 1), first);
  EXPECT_EQ(table.dying(first.front()->number), second);
  EXPECT_EQ(table.newest_dying(), second.front()->number);
  table.end_death(*first.front());
  EXPECT_EQ(table.dying(), second);
  EXPECT_FALSE(table.in_use(8));
  table.end_death(*second.front());
  EXPECT_TRUE(table.dying().empty());
  EXPECT_FALSE(table.in_use(7));
}

TEST(LayoutTable, TheFilesOfASnapshotAreFoundAmongAllOthers) {
  LayoutTable table;
  const InodeId first = inode_in(3, 7);
  const InodeId second = inode_in(3, 8);
  uint8_t number = 0;
  for (const InodeId inode : {InodeId{7}, inode_in(2, 7), second, first, inode_in(4, 7)})
    table.add(inode, 1, {std::byte{++number}}).add_hole({0, 4096});
  EXPECT_EQ(table.files_of_snapshot(3, 10), (std::vector<uint64_t>{first, second}));
  EXPECT_EQ(table.files_of_snapshot(3, 1), std::vector<uint64_t>{first});
  table.erase(first, 1);
  EXPECT_EQ(table.files_of_snapshot(3, 10), std::vector<uint64_t>{second});
  EXPECT_TRUE(table.files_of_snapshot(5, 10).empty());
}

TEST(LayoutTable, AFileIsWrittenUntilTheLastGrantToWriteIsDead) {
  LayoutTable table;
  HeldLayout& layout = table.add(7, 1, {});
  table.add_grant(layout, grant_of(1));
  EXPECT_EQ(table.written(), 0U);
  HeldGrant to_write = grant_of(2);
  to_write.writable = true;
  table.add_grant(layout, to_write);
  EXPECT_EQ(table.written_files(0, 10), std::vector<uint64_t>{7});
  EXPECT_TRUE(table.written_files(8, 10).empty());
  EXPECT_TRUE(table.written_files(0, 0).empty());
  const auto dying =
      table.begin_death(7, 1, table.give_back(layout, {0, kEndOfFile}, IoMode::kAny), one_brick);
  table.erase(7, 1);
  EXPECT_GT(table.written(), 0U);
  table.end_death(*dying.front());
  EXPECT_EQ(table.written(), 0U);
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
      table_.add_grant(layout, grant);
      grant.held.add(grant.file);
      held_.emplace_back(client, std::move(grant));
    }
  }
  void give_back(const ByteRange& range) {
    const uint64_t client = 1 + below(kClients);
    HeldLayout* layout = table_.find(kFile, client);
    if (layout == nullptr) return;
    auto dead = table_.give_back(*layout, range, IoMode::kAny);
    const size_t gone = std::erase_if(held_, [&](auto& each) {
      if (each.first == client) each.second.held.remove(range);
      return each.second.held.empty();
    });
    EXPECT_EQ(dead.size(), gone);
    leave(client, std::move(dead));
  }
  // Some that were not told.
  void take_back() {
    const uint64_t client = 1 + below(kClients);
    HeldLayout* layout = table_.find(kFile, client);
    if (layout == nullptr) return;
    std::vector<HeldGrant> named;
    for (const HeldGrant& grant : layout->grants()) {
      if (below(8) == 0) named.push_back(grant);
    }
    const auto is_named = [&](const HeldGrant& grant) {
      return std::ranges::any_of(named, [&](const HeldGrant& other) { return other.same(grant); });
    };
    auto dead = table_.take_back(*layout, named);
    EXPECT_EQ(dead.size(), named.size());
    std::erase_if(held_, [&](const auto& each) { return is_named(each.second); });
    leave(client, std::move(dead));
  }
  void leave(uint64_t client, std::vector<HeldGrant> dead) {
    for (auto& piece : table_.begin_death(kFile, client, std::move(dead), one_brick)) {
      EXPECT_LE(piece->grants.size(), kGrantsPerPiece);
      dying_.push_back(std::move(piece));
    }
    if (table_.find(kFile, client)->empty()) table_.erase(kFile, client);
  }
  void die() {
    if (dying_.empty()) return;
    const size_t at = below(dying_.size());
    table_.end_death(*dying_[at]);
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
    bool all_written = true;
    RangeSet bytes;
    bytes.add(asked);
    bytes = table_.out_of_reach(kFile, std::move(bytes));
    for (uint64_t at = asked.begin; at < asked.end; ++at) {
      const bool written = any(0, [&](const HeldGrant& grant) {
        return grant.writable && grant.file.begin <= at && at < grant.file.end;
      });
      all_written = all_written && written;
      ASSERT_EQ(bytes.contains({at, at + 1}), !written);
    }
    ASSERT_EQ(table_.may_be_written(kFile, asked), all_written);
    ASSERT_EQ(table_.written() > 0, any(0, [](const HeldGrant& grant) { return grant.writable; }));
    compare_layouts();
    ASSERT_EQ(table_.in_use(kFile), !held_.empty() || !dying_.empty());
  }

  // What a layout finds by halving.
  void compare_layouts() {
    const ByteRange asked = range();
    for (uint64_t client = 1; client <= kClients; ++client) {
      const HeldLayout* layout = table_.find(kFile, client);
      if (layout == nullptr) continue;
      size_t there = 0;
      ByteRange rounded = asked;
      for (bool grew = true; grew;) {
        grew = false;
        there = 0;
        for (const auto& [holder, grant] : held_) {
          if (holder != client) continue;
          there += grant.file.overlaps(asked) ? 1 : 0;
          if (!grant.file.overlaps(rounded) || rounded.contains(grant.file)) continue;
          rounded = {std::min(rounded.begin, grant.file.begin), std::max(rounded.end, grant.file.end)};
          grew = true;
        }
      }
      ASSERT_EQ(layout->grants_in(asked).size(), there);
      ASSERT_EQ(layout->rounded_out(asked), rounded);
    }
  }

  SeededRandom random_{5};
  LayoutTable table_;
  uint64_t next_ = 1;
  std::vector<std::pair<uint64_t, HeldGrant>> held_;  // with its client
  std::vector<DyingPointer> dying_;
};

TEST_F(DyingModel, WhatIsDyingIsReachableUntilItsPieceIsDead) {
  for (int step = 0; step < 600; ++step) {
    switch (below(10)) {
      case 0:
        give_back({0, kEndOfFile});
        break;
      case 1:
      case 2:
        grant();
        break;
      case 3:
        take_back();
        break;
      case 4:
        give_back({below(kOffsets), kOffsets});
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
