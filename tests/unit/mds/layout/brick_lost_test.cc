// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/mds/meta/records.h"
#include "tests/unit/mds/layout/layout_world.h"

// A brick is lost under many layouts: they end so many a turn, and what has not ended yet is as if it had.
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

constexpr size_t kFiles = 500;
constexpr size_t kPerTurn = 64;

struct BrickLost : ::testing::Test {
  LayoutWorld world;
  std::vector<InodeId> files;

  // Alice may write each of many files; past the brick: what is held, not how.
  void SetUp() override {
    for (size_t i = 0; i < kFiles; ++i) {
      files.push_back(world.create("f" + std::to_string(i)));
      std::array<std::byte, 12> other{};
      store_big_endian(other.data() + 4, uint64_t{i});
      other[0] = kLayoutStateidTag;
      HeldLayout& layout = table().add(files.back(), kAlice, other);
      layout.advance();
      table().add_grant(layout, {.grant = i + 1, .file = {0, 4096}, .logical = i * 4096, .writable = true});
      ASSERT_TRUE(Records(world.store).put(RecordKind::kLayout, writing_record_key(files.back()), ""));
    }
  }
  LayoutTable& table() { return const_cast<LayoutTable&>(world.mds->table()); }
  size_t held() { return table().layouts(); }
  LayoutStateid stateid(size_t number) { return table().find(files[number], kAlice)->stateid(); }
  uint64_t change(size_t number) { return world.stat(files[number])->change; }
  // Turns until the brick is ready; what moves in one of them is bounded.
  size_t turns_until_ready() {
    size_t turns = 0;
    for (; !world.mds->ready() && turns < 1000; ++turns) {
      const size_t layouts = held();
      const size_t commits = world.store.kinds.size();
      world.loop.run_once(Milliseconds(0));
      EXPECT_LE(layouts - held(), 2 * kPerTurn);
      // One for a recall, one to take a layout off the record, up to two when its handles are dead.
      EXPECT_LE(world.store.kinds.size() - commits, 4 * kPerTurn + 10);
    }
    EXPECT_TRUE(world.mds->ready());
    return turns;
  }
};

TEST_F(BrickLost, ItsLayoutsEndSoManyATurnAndItIsReadyWhenAllHave) {
  const uint64_t before = change(kFiles - 1);
  world.plug.down(world.kBrick);
  EXPECT_GE(held(), kFiles - kPerTurn) << "the rest is for later turns";
  world.brick.restart();
  world.plug.up(world.kBrick);
  const size_t turns = turns_until_ready();
  EXPECT_GE(turns, kFiles / kPerTurn);
  EXPECT_EQ(held(), 0U);
  world.settle();
  EXPECT_GT(change(kFiles - 1), before) << "a writer may have written what it never told us";
  EXPECT_FALSE(table().in_use(files.back())) << "nothing is dying any more";
  EXPECT_EQ(world.counters.layouts_revoked, kFiles);
}

TEST_F(BrickLost, WhatHasNotEndedYetIsAsIfItHad) {
  const LayoutStateid last = stateid(kFiles - 1);
  const LayoutStateid second_last = stateid(kFiles - 2);
  world.plug.down(world.kBrick);
  ASSERT_NE(table().find(files[kFiles - 1], kAlice), nullptr) << "too early for the test";
  ASSERT_NE(table().find(files[kFiles - 2], kAlice), nullptr);
  // Its client finds it revoked, and is answered at once, though nobody can tell when the handle is dead.
  EXPECT_EQ(world.mds->layouts().find(kAlice, files[kFiles - 1], last).error(), Status::kAdminRevoked);
  bool returned = false;
  world.mds->layouts().give_back(kAlice, files[kFiles - 3], {0, kEndOfFile}, IoMode::kAny,
                                 [&] { returned = true; });
  EXPECT_TRUE(returned);
  // For others it conflicts until the brick has closed its sessions, and nobody is asked for it.
  bool cleared = false;
  world.mds->layouts().clear(files[kFiles - 2], {0, kEndOfFile}, kBob, [&](bool all) { cleared = all; });
  EXPECT_EQ(world.mds->layouts().find(kAlice, files[kFiles - 2], second_last).error(), Status::kAdminRevoked);
  EXPECT_EQ(world.mds->layouts().recalls().sent(), 0U);
  EXPECT_TRUE(table().reachable(files[kFiles - 2], {0, 4096}));
  EXPECT_FALSE(cleared);
  world.brick.restart();
  world.plug.up(world.kBrick);
  turns_until_ready();
  EXPECT_TRUE(cleared);
  EXPECT_FALSE(table().reachable(files[kFiles - 2], {0, 4096}));
}

// Of one file, too; who is not revoked in the turn of the first conflict is asked, and his slice comes.
TEST_F(BrickLost, ManyHoldersOfAFileAreRevokedSoManyATurn) {
  constexpr uint64_t kFirstClient = 5000;
  for (uint64_t client = kFirstClient; client < kFirstClient + kFiles; ++client) {
    std::array<std::byte, 12> other{};
    store_big_endian(other.data() + 4, client);
    other[0] = kLayoutStateidTag;
    HeldLayout& layout = table().add(files[0], client, other);
    layout.advance();
    table().add_grant(layout, {.grant = client, .file = {0, 4096}, .logical = 0, .writable = true});
  }
  world.plug.down(world.kBrick);
  const size_t before = held();
  bool cleared = false;
  world.mds->layouts().clear(files[0], {0, kEndOfFile}, kBob, [&](bool all) { cleared = all; });
  EXPECT_LE(before - held(), kPerTurn);
  EXPECT_EQ(world.mds->layouts().find(kFirstClient, files[0], {1, {}}).error(), Status::kBadStateid);
  EXPECT_LE(before - held(), kPerTurn + 1);
  world.brick.restart();
  world.plug.up(world.kBrick);
  turns_until_ready();
  world.settle();
  EXPECT_TRUE(cleared);
  EXPECT_FALSE(table().in_use(files[0]));
}

TEST_F(BrickLost, AnotherLossBetweenTwoSlicesChangesNothing) {
  world.plug.down(world.kBrick);
  world.plug.up(world.kBrick);
  world.loop.run_once(Milliseconds(0));
  world.plug.down(world.kBrick);
  EXPECT_GT(held(), 0U);
  world.settle();
  EXPECT_EQ(held(), 0U);
  EXPECT_TRUE(table().in_use(files.back())) << "not dead before its sessions are closed";
  world.brick.restart();
  world.plug.up(world.kBrick);
  turns_until_ready();
  world.settle();
  EXPECT_FALSE(table().in_use(files.back()));
}

TEST_F(BrickLost, FilesThatWereBeingWrittenWhenTheLastRunEndedAreTouchedSoManyATurn) {
  const uint64_t before = change(kFiles - 1);
  world.crash();
  world.build();
  world.plug.up(world.kBrick);
  EXPECT_GE(turns_until_ready(), kFiles / kPerTurn) << "nobody writes before all have been touched";
  EXPECT_GT(change(kFiles - 1), before);
  size_t left = 0;
  ASSERT_TRUE(Records(world.store).scan(RecordKind::kLayout, [&](auto, auto) { return ++left > 0; }));
  EXPECT_EQ(left, 0U);
}

// A crash between two slices: whoever was not touched yet is by the next run.
TEST_F(BrickLost, ACrashBetweenTwoSlicesForgetsNobody) {
  std::vector<uint64_t> before;
  for (size_t i = 0; i < kFiles; ++i) before.push_back(change(i));
  for (const int turns : {5, 8, 11}) {
    world.crash();
    world.build();
    world.plug.up(world.kBrick);
    for (int i = 0; i < turns; ++i) world.loop.run_once(Milliseconds(0));
  }
  world.crash();
  world.start();
  for (size_t i = 0; i < kFiles; ++i) EXPECT_GT(change(i), before[i]) << i;
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
