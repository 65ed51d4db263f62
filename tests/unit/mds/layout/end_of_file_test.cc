// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

// Who holds the layout behind the end of a file as its only writer, and what takes it from him.
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

struct EndOfFile : ::testing::Test {
  LayoutWorld world;
  InodeId file = world.create("f");

  EndOfFile() {
    world.recaller.opens = {{file, kAlice}};
    world.obey_recalls();
  }
  // LAYOUTGET of somebody who appends: the token behind the answer, 0: none.
  uint64_t ask(uint64_t client, uint64_t offset = 0, uint64_t length = 4096, bool wants_end = true) {
    world.wants_end = wants_end;
    const auto answer = world.get(client, file, IoMode::kReadWrite, offset, length, length);
    world.wants_end = false;
    EXPECT_TRUE(answer);
    if (!answer) return 0;
    nfs4::LayoutBody body;
    nfs4::LayoutEnd end;
    xdr::Decoder decoder(answer->layouts.front().content.body);
    EXPECT_TRUE(xdr::decode(decoder, body));
    if (decoder.remaining() == 0) return 0;
    EXPECT_TRUE(xdr::decode(decoder, end));
    EXPECT_EQ(decoder.remaining(), 0u);
    EXPECT_NE(end.token, 0u);
    return end.token;
  }
  Status opens_to_write(uint64_t client) {
    std::optional<Status> status;
    world.mds->conflicts().before_open_to_write(file, client, [&](Status got) { status = got; });
    world.settle();
    world.pass(Milliseconds(300));
    if (status == Status::kOk) world.recaller.opens.insert({file, client});
    return status.value_or(Status::kServerFault);
  }
  bool held_against(uint64_t client) { return world.mds->conflicts().has_sole_writer(file, client); }
};

TEST_F(EndOfFile, TheOnlyWriterIsToldThatItIsHis) {
  const uint64_t token = ask(kAlice);
  EXPECT_NE(token, 0u);
  EXPECT_TRUE(held_against(kBob));
  EXPECT_FALSE(held_against(kAlice));
  // As long as nothing came between it is the same.
  EXPECT_EQ(ask(kAlice, 4096), token);
  EXPECT_EQ(ask(kAlice), token);
}

TEST_F(EndOfFile, WhoDoesNotAskForItGetsTheBodyAsItWas) {
  EXPECT_EQ(ask(kAlice, 0, 4096, false), 0u);
  EXPECT_FALSE(held_against(kBob));
}

TEST_F(EndOfFile, ItIsNobodysWhileTwoHaveTheFileOpenForWriting) {
  world.recaller.opens.insert({file, kBob});
  EXPECT_EQ(ask(kAlice), 0u);
  EXPECT_EQ(ask(kBob), 0u);
  world.recaller.opens.erase({file, kBob});
  EXPECT_TRUE(world.give_back(kBob, file));
  EXPECT_NE(ask(kAlice), 0u);
}

TEST_F(EndOfFile, ItIsNobodysWhileALayoutBehindItOutlivesItsOpen) {
  world.recaller.opens = {{file, kBob}};
  EXPECT_EQ(ask(kBob, 0, 4096, false), 0u);
  world.recaller.opens = {{file, kAlice}};
  EXPECT_EQ(ask(kAlice), 0u);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_NE(ask(kAlice), 0u);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
}

// All holders are asked, so many a turn, and none twice.
TEST_F(EndOfFile, ManyLayoutsBehindItAreAskedForInTurns) {
  constexpr uint64_t kFirst = 5000;
  constexpr uint64_t kHolders = 300;
  constexpr size_t kPerTurn = 64;
  auto& table = const_cast<LayoutTable&>(world.mds->table());
  for (uint64_t i = 0; i < kHolders; ++i) {
    std::array<std::byte, 12> other{std::byte{kLayoutStateidTag}};
    store_big_endian(other.data() + 4, i);
    table.add_grant(
        table.add(file, kFirst + i, other),
        {.grant = 1'000'000 + i, .file = {kBlock, 2 * kBlock}, .logical = kBlock, .writable = true});
  }
  world.recaller.on_recall = nullptr;
  auto& layouts = world.mds->layouts();
  EXPECT_FALSE(layouts.end_is_free(file, kAlice, 0));
  EXPECT_EQ(world.recaller.recalls.size(), kPerTurn);
  world.settle();
  EXPECT_EQ(world.recaller.recalls.size(), kHolders);
  EXPECT_FALSE(layouts.end_is_free(file, kAlice, 0));
  world.settle();
  EXPECT_EQ(world.recaller.recalls.size(), kHolders);
  for (uint64_t i = 0; i < kHolders; ++i) EXPECT_TRUE(world.give_back(kFirst + i, file));
  EXPECT_TRUE(layouts.end_is_free(file, kAlice, 0));
}

TEST_F(EndOfFile, AnOpenForWritingByAnotherTakesItBackAndItStaysShared) {
  ASSERT_NE(ask(kAlice), 0u);
  EXPECT_EQ(opens_to_write(kBob), Status::kOk);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_FALSE(held_against(kBob));
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_EQ(ask(kAlice), 0u);
  // In turns: the second one to open it recalls nothing any more.
  world.recaller.opens = {{file, kAlice}};
  EXPECT_EQ(ask(kAlice), 0u);
  EXPECT_EQ(opens_to_write(kBob), Status::kOk);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
  world.recaller.opens = {{file, kAlice}};
  world.pass(Milliseconds(11'000));
  EXPECT_NE(ask(kAlice), 0u);
}

TEST_F(EndOfFile, AnOpenWaitsUntilItHasComeBack) {
  ASSERT_NE(ask(kAlice), 0u);
  world.recaller.on_recall = nullptr;
  EXPECT_EQ(opens_to_write(kBob), Status::kDelay);
  EXPECT_TRUE(held_against(kBob));
  EXPECT_TRUE(world.give_back(kAlice, file));
  EXPECT_FALSE(held_against(kBob));
  EXPECT_EQ(opens_to_write(kBob), Status::kOk);
}

TEST_F(EndOfFile, AWriteThatMakesTheFileLongerTakesItBackFirst) {
  const uint64_t token = ask(kAlice);
  ASSERT_NE(token, 0u);
  // As by a special stateid, without an open.
  EXPECT_EQ(world.write(file, 0, "longer"), Status::kOk);
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_FALSE(held_against(kBob));
  EXPECT_NE(ask(kAlice), token);
}

TEST_F(EndOfFile, AWriteInsideOfTheFileLeavesIt) {
  ASSERT_EQ(world.write(file, 0, std::string(4096, 'x')), Status::kOk);
  ASSERT_NE(ask(kAlice, 4096), 0u);
  EXPECT_EQ(world.write(file, 0, "inside"), Status::kOk);
  EXPECT_TRUE(world.recaller.recalls.empty());
  EXPECT_TRUE(held_against(kBob));
}

TEST_F(EndOfFile, ASizeThatIsSetTakesItBackFirst) {
  ASSERT_EQ(world.write(file, 0, std::string(8192, 'x')), Status::kOk);
  for (const uint64_t size : {100, 20'000}) {
    const uint64_t token = ask(kAlice, 8192);
    ASSERT_NE(token, 0u);
    const size_t recalls = world.recaller.recalls.size();
    EXPECT_EQ(world.set_size(file, size, kBob), Status::kOk);
    EXPECT_EQ(world.recaller.recalls.size(), recalls + 1);
    EXPECT_FALSE(held_against(kBob));
    const uint64_t next = ask(kAlice, 20'480);
    EXPECT_NE(next, 0u);
    EXPECT_NE(next, token);
    ASSERT_TRUE(world.give_back(kAlice, file));
  }
}

// Nothing of his lies behind the end, so that there is nothing to recall; he has to ask all the same.
TEST_F(EndOfFile, WithoutRoomBehindTheEndItIsGoneAsSoonAsTheSizeChanges) {
  const auto first = world.get(kAlice, file, IoMode::kReadWrite, 0, 4096, 4096);
  ASSERT_TRUE(first);
  const uint64_t end = world.segments(first).back().file_offset + world.segments(first).back().length;
  ASSERT_EQ(world.commit(kAlice, file, world.stateid_of(first), {0, end}, end - 1), Status::kOk);
  const uint64_t token = ask(kAlice);
  ASSERT_NE(token, 0u);
  EXPECT_EQ(world.set_size(file, end + 4096, kBob), Status::kOk);
  EXPECT_TRUE(world.recaller.recalls.empty());
  EXPECT_NE(ask(kAlice), token);
}

TEST_F(EndOfFile, WhatIsGivenBackTakesItAlong) {
  ASSERT_NE(ask(kAlice, 0, 4096), 0u);
  ASSERT_TRUE(world.give_back(kAlice, file, 0, 4096));
  EXPECT_FALSE(held_against(kBob));
}

TEST_F(EndOfFile, ARevokedLayoutTakesItAlong) {
  ASSERT_NE(ask(kAlice), 0u);
  world.mds->layouts().revoke_layout(kAlice, file, [](std::optional<size_t>) {});
  world.settle();
  EXPECT_FALSE(held_against(kBob));
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
