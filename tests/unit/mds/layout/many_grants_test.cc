// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "server/mds/layout/layout_records.h"
#include "server/mds/meta/records.h"
#include "tests/unit/mds/layout/layout_world.h"

// A layout of more grants than may die in one turn: they die in pieces, and until the last one has, it conflicts.
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

constexpr ByteRange kAll{0, kEndOfFile};

struct ManyGrants : ::testing::Test {
  static constexpr uint64_t kPieces = 5;
  static constexpr uint64_t kGrants = (kPieces - 1) * kGrantsPerPiece + 7;
  // Behind what the file has: nobody looks at the memory.
  static constexpr uint64_t kFirst = uint64_t{1} << 30;
  static constexpr ByteRange kLast{kFirst + (kGrants - 1) * kGrainSize, kFirst + kGrants* kGrainSize};
  static constexpr size_t kPerTurn = 2 * kGrantsPerPiece;
  LayoutWorld world;
  InodeId file = world.create("f");

  // Alice may write by each of them.
  void SetUp() override {
    ASSERT_EQ(world.write(file, 0, std::string(100, static_cast<char>('A' + file % 26))), Status::kOk);
    world.brick.sessions.insert(kAlice);
    HeldLayout& layout = table().add(file, kAlice, {std::byte{kLayoutStateidTag}});
    layout.advance();
    for (uint64_t i = 0; i < kGrants; ++i) {
      const uint64_t number = 1'000'000 + i;
      const uint64_t offset = kFirst + i * kGrainSize;
      table().add_grant(
          layout,
          {.grant = number, .file = {offset, offset + kGrainSize}, .logical = offset, .writable = true});
      world.brick.grants[number] = {kAlice, {number, offset, kGrainSize, true, 0x100, 0x7000000}};
    }
    ASSERT_TRUE(Records(world.store).put(RecordKind::kLayout, writing_record_key(file), ""));
  }
  LayoutTable& table() { return const_cast<LayoutTable&>(world.mds->table()); }
  size_t dying() {
    size_t count = 0;
    for (const DyingPointer& piece : table().dying())
      count += piece->inode == file ? piece->grants.size() : 0;
    return count;
  }
  bool is_on_record() {
    return Records(world.store).get(RecordKind::kLayout, writing_record_key(file)).value().has_value();
  }
  // As the answers do that tell of them.
  void put_on_record() {
    const HeldLayout& layout = *table().find(file, kAlice);
    ASSERT_TRUE(LayoutRecords(world.store).told(layout, layout.grants()));
    ASSERT_EQ(records(), 1 + kGrants);
  }
  // Of the layout and its grants.
  size_t records() {
    size_t count = 0;
    EXPECT_TRUE(Records(world.store).scan(RecordKind::kHeldLayout, [&](auto, auto) { return ++count > 0; }));
    return count;
  }
  void turn() {
    const size_t before = dying();
    world.loop.run_once(Milliseconds(0));
    EXPECT_LE(before - std::min(before, dying()), kPerTurn) << "in one turn";
  }
  void turns_until_dead() {
    for (int i = 0; i < 100 && dying() > 0; ++i) turn();
    world.settle();
    EXPECT_EQ(dying(), 0u);
  }
  // Some are dead, some are not.
  void turns_until_half_dead() {
    const auto half = [this] { return dying() > 0 && dying() <= kGrants / 2; };
    for (int i = 0; i < 100 && !half(); ++i) turn();
    ASSERT_TRUE(half());
  }
  std::shared_ptr<bool> give_back() {
    auto done = std::make_shared<bool>(false);
    world.mds->layouts().give_back(kAlice, file, kAll, IoMode::kAny, [done] { *done = true; });
    EXPECT_EQ(dying(), kGrants) << "all have left the layout, none is dead";
    return done;
  }
  std::shared_ptr<bool> alice_goes() {
    auto done = std::make_shared<bool>(false);
    world.mds->conflicts().on_client_gone(kAlice, [done] { *done = true; });
    return done;
  }
};

TEST_F(ManyGrants, AreGivenBackInPiecesAndTheReturnIsAnsweredBehindTheLast) {
  const auto done = give_back();
  EXPECT_EQ(table().find(file, kAlice), nullptr);
  for (int i = 0; i < 100 && dying() > 0; ++i) {
    EXPECT_FALSE(*done);
    EXPECT_TRUE(is_on_record());
    EXPECT_TRUE(table().reachable(file, kLast));
    turn();
  }
  world.settle();
  EXPECT_TRUE(*done);
  EXPECT_FALSE(is_on_record());
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_EQ(world.brick.count("withdraw"), kPieces);
  EXPECT_TRUE(world.brick.breaches.empty());
  EXPECT_FALSE(table().in_use(file));
}

TEST_F(ManyGrants, OfWhichNoneIsAnsweredForAreAllWithdrawn) {
  world.brick.hold_withdrawals = true;
  const auto done = give_back();
  world.settle();
  EXPECT_EQ(world.brick.count("withdraw"), kPieces);
  EXPECT_EQ(dying(), kGrants);
  EXPECT_FALSE(*done);
  world.brick.release();
  world.settle();
  EXPECT_EQ(dying(), 0u);
  EXPECT_TRUE(*done);
}

TEST_F(ManyGrants, WhatTheClientIsGrantedMeanwhileIsNotReturnedWithThem) {
  const auto done = give_back();
  turns_until_half_dead();
  std::optional<LayoutGranter::Answer> answer;
  GrantRequest request{.client = kAlice, .inode = file, .mode = IoMode::kRead};
  request.range = {0, 100};
  request.min_length = 1;
  request.max_bytes = 65536;
  world.mds->granter().grant(request, [&](LayoutGranter::Answer got) { answer = std::move(got); });
  turns_until_dead();
  ASSERT_TRUE(answer && *answer);
  EXPECT_TRUE(*done);
  ASSERT_NE(table().find(file, kAlice), nullptr);
  EXPECT_EQ(table().find(file, kAlice)->grants().size(), 1u);
  EXPECT_EQ(world.brick.grants.size(), 1u);
}

// Nobody asks the client: it has given them back.
TEST_F(ManyGrants, AConflictWaitsForThePieceItIsWith) {
  give_back();
  turn();
  bool cleared = false;
  world.mds->layouts().clear(file, kLast, kBob, [&](bool all) { cleared = all; });
  for (int i = 0; i < 100 && table().reachable(file, kLast); ++i) {
    EXPECT_FALSE(cleared);
    turn();
  }
  world.settle();
  EXPECT_TRUE(cleared);
  EXPECT_EQ(world.recaller.recalls.size(), 0u);
}

TEST_F(ManyGrants, AreAnsweredForAtOnceWhenTheirBrickIsLostMeanwhileAndAreDyingUntilItIsBack) {
  world.brick.hold_withdrawals = true;
  const auto done = give_back();
  turn();
  world.plug.down(world.kBrick);
  world.settle();
  EXPECT_TRUE(*done);
  EXPECT_EQ(dying(), kGrants);
  EXPECT_TRUE(table().reachable(file, kLast));
  world.brick.restart();
  world.brick.release();
  world.plug.up(world.kBrick);
  world.settle();
  EXPECT_EQ(dying(), 0u);
  EXPECT_TRUE(world.mds->ready());
  EXPECT_FALSE(is_on_record());
}

TEST_F(ManyGrants, OfALostBrickAreRevokedAndDieInPieces) {
  const uint64_t before = world.stat(file)->change;
  world.plug.down(world.kBrick);
  world.settle();
  EXPECT_EQ(table().find(file, kAlice), nullptr);
  EXPECT_EQ(dying(), kGrants);
  world.brick.restart();
  world.plug.up(world.kBrick);
  world.settle();
  EXPECT_EQ(dying(), 0u);
  EXPECT_GT(world.stat(file)->change, before);
  EXPECT_FALSE(is_on_record());
}

TEST_F(ManyGrants, ARevocationIsToldBehindTheLastPiece) {
  std::optional<size_t> handles;
  world.mds->layouts().revoke_layout(kAlice, file, [&](std::optional<size_t> got) { handles = got; });
  for (int i = 0; i < 100 && dying() > 0; ++i) {
    EXPECT_FALSE(handles);
    turn();
  }
  world.settle();
  EXPECT_EQ(handles, kGrants);
}

TEST_F(ManyGrants, OfAClientThatIsGoneDieInPieces) {
  const uint64_t before = world.stat(file)->change;
  const auto done = alice_goes();
  for (int i = 0; i < 100 && !*done; ++i) {
    const bool reachable = table().reachable(file, kLast);
    if (reachable) {
      EXPECT_TRUE(is_on_record());
      EXPECT_FALSE(*done);
    }
    turn();
  }
  EXPECT_TRUE(*done);
  EXPECT_FALSE(table().in_use(file));
  EXPECT_FALSE(is_on_record());
  EXPECT_GT(world.stat(file)->change, before);
}

TEST_F(ManyGrants, ACrashBetweenTwoPiecesIsAWriterThatWasInterrupted) {
  alice_goes();
  turns_until_half_dead();
  EXPECT_TRUE(is_on_record());
  const uint64_t before = world.stat(file)->change;
  world.crash();
  world.start();
  EXPECT_GT(world.stat(file)->change, before);
  EXPECT_FALSE(is_on_record());
}

TEST_F(ManyGrants, OfAFileThatIsRemovedMeanwhileKeepItUntilTheLastIsDead) {
  give_back();
  turns_until_half_dead();
  const auto removed = world.names->remove(kRootInode, "f");
  ASSERT_TRUE(removed && removed->orphaned);
  world.mds->conflicts().on_orphaned(file);
  turn();
  EXPECT_TRUE(world.names->get(file));
  turns_until_dead();
  EXPECT_FALSE(world.names->get(file));
  world.check("removed");
}

TEST_F(ManyGrants, TheServerMayEndBetweenTwoPieces) {
  give_back();
  turns_until_half_dead();
  world.stop();
}

TEST_F(ManyGrants, LeaveTheRecordBeforeTheyAreWithdrawnPieceByPiece) {
  put_on_record();
  world.brick.hold_withdrawals = true;
  give_back();
  size_t before = records();
  EXPECT_EQ(before, kGrants - kGrantsPerPiece) << "the layout is gone with the first piece";
  for (int i = 0; i < 100 && records() > 0; ++i) {
    world.loop.run_once(Milliseconds(0));
    const size_t now = records();
    EXPECT_LE(before - now, kGrantsPerPiece) << "in one turn";
    before = now;
  }
  EXPECT_EQ(records(), 0u);
  EXPECT_EQ(dying(), kGrants);
  world.brick.release();
  world.settle();
}

TEST_F(ManyGrants, ThatWereRevokedOrWhoseClientIsGoneLeaveNoRecord) {
  put_on_record();
  world.mds->layouts().revoke_layout(kAlice, file, [](std::optional<size_t>) {});
  world.settle();
  EXPECT_EQ(records(), 0u);
  world.brick.grants.clear();
  SetUp();
  put_on_record();
  alice_goes();
  world.settle();
  EXPECT_EQ(records(), 0u);
}

TEST_F(ManyGrants, ThatARestartFindsWithoutTheirLayoutAreWithdrawnByIt) {
  put_on_record();
  world.brick.hold_withdrawals = true;
  give_back();
  world.loop.run_once(Milliseconds(0));
  ASSERT_GT(records(), 0u);
  world.crash();
  world.brick.hold_withdrawals = false;
  world.start();
  world.settle();
  EXPECT_EQ(records(), 0u);
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_FALSE(table().in_use(file));
}

// --- what is told of it meanwhile ---

struct ManyGrantsTold : ManyGrants {
  LayoutStateid stateid;

  void SetUp() override {
    ManyGrants::SetUp();
    stateid = table().find(file, kAlice)->stateid();
    world.brick.hold_withdrawals = true;
  }
  void release() {
    world.brick.release();
    world.settle();
    ASSERT_EQ(dying(), 0u);
  }
  Status find() {
    const auto found = world.mds->layouts().find(kAlice, file, stateid);
    return found ? Status::kOk : found.error();
  }
  Status test() { return world.mds->conflicts().test_stateid(kAlice, stateid); }
  Status free() { return world.mds->conflicts().free_stateid(kAlice, stateid); }
  std::shared_ptr<bool> give_back(const ByteRange& range) {
    auto done = std::make_shared<bool>(false);
    world.mds->layouts().give_back(kAlice, file, range, IoMode::kAny, [done] { *done = true; });
    world.settle();
    return done;
  }
};

// Who knows of it takes his WRITEs under way for dead, and writes by another way.
TEST_F(ManyGrantsTold, ARevocationIsNoneBeforeTheLastHandleIsDead) {
  world.mds->layouts().revoke_layout(kAlice, file, [](std::optional<size_t>) {});
  world.settle();
  ASSERT_EQ(dying(), kGrants);
  EXPECT_TRUE(world.recaller.revoked.empty());
  EXPECT_EQ(find(), Status::kDelay);
  EXPECT_EQ(test(), Status::kOk);
  EXPECT_EQ(free(), Status::kLocksHeld);
  release();
  EXPECT_TRUE(world.recaller.revoked.contains(kAlice));
  EXPECT_EQ(find(), Status::kAdminRevoked);
  EXPECT_EQ(test(), Status::kAdminRevoked);
  EXPECT_EQ(free(), Status::kOk);
  EXPECT_TRUE(world.recaller.revoked.empty());
}

TEST_F(ManyGrantsTold, AReturnedLayoutIsUnknownBehindTheLastHandle) {
  const auto done = give_back(kAll);
  EXPECT_EQ(find(), Status::kDelay);
  EXPECT_EQ(test(), Status::kOk);
  EXPECT_FALSE(*done);
  release();
  EXPECT_TRUE(*done);
  EXPECT_EQ(find(), Status::kBadStateid);
  EXPECT_EQ(test(), Status::kBadStateid);
}

TEST_F(ManyGrantsTold, ASecondReturnIsAnsweredBehindTheHandlesOfTheFirst) {
  const auto part = give_back(kLast);
  const auto again = give_back(kLast);
  const auto elsewhere = give_back({0, 100});
  auto all = std::make_shared<bool>(false);
  world.mds->layouts().give_back_all(kAlice, IoMode::kAny, [all] { *all = true; });
  world.settle();
  EXPECT_FALSE(*part);
  EXPECT_FALSE(*again);
  EXPECT_TRUE(*elsewhere);
  EXPECT_FALSE(*all);
  release();
  EXPECT_TRUE(*part && *again && *all);
}

TEST_F(ManyGrantsTold, AReturnOfAllIsAnsweredBehindALayoutThatDiesAlready) {
  give_back(kAll);
  auto all = std::make_shared<bool>(false);
  world.mds->layouts().give_back_all(kAlice, IoMode::kAny, [all] { *all = true; });
  world.settle();
  EXPECT_FALSE(*all);
  release();
  EXPECT_TRUE(*all);
}

// The return of a part is done while the rest, which was revoked, is dying.
TEST_F(ManyGrantsTold, NorDoesTheReturnOfAPartTellOfIt) {
  const auto part = give_back(kLast);
  world.mds->layouts().revoke_layout(kAlice, file, [](std::optional<size_t>) {});
  EXPECT_EQ(world.mds->layouts().stateid_left(kAlice, file, stateid.other).error(), Status::kDelay);
  world.brick.release();
  world.settle();
  EXPECT_EQ(world.mds->layouts().stateid_left(kAlice, file, stateid.other).error(), Status::kAdminRevoked);
}

TEST_F(ManyGrantsTold, ThatNothingIsLeftIsToldBehindTheReturnOfAll) {
  give_back(kAll);
  EXPECT_EQ(world.mds->layouts().stateid_left(kAlice, file, stateid.other).error(), Status::kDelay);
  release();
  const auto left = world.mds->layouts().stateid_left(kAlice, file, stateid.other);
  ASSERT_TRUE(left);
  EXPECT_FALSE(*left);
}

// Nor does the next layout, which has another stateid.
TEST_F(ManyGrantsTold, NobodyIsGrantedTheNextOneBeforeARevocationIsOver) {
  world.mds->layouts().revoke_layout(kAlice, file, [](std::optional<size_t>) {});
  EXPECT_EQ(world.get(kAlice, file, IoMode::kRead, 0, 100).error(), Status::kLayoutTryLater);
  EXPECT_TRUE(world.get(kBob, file, IoMode::kRead, 0, 100));
  release();
  EXPECT_TRUE(world.get(kAlice, file, IoMode::kRead, 0, 100));
}

TEST(NextLayout, IsNotGrantedToWhoAskedBeforeTheRevocation) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_EQ(world.write(file, 0, std::string(2 * kBlock, static_cast<char>('A' + file % 26))), Status::kOk);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kRead, 0, 4096));
  world.brick.hold_withdrawals = true;
  bool revoked = false;
  world.brick.behind_call = [&] {
    if (world.brick.calls.back() == "expose" && !std::exchange(revoked, true))
      world.mds->layouts().revoke_layout(kAlice, file, [](std::optional<size_t>) {});
    return true;
  };
  EXPECT_EQ(world.get(kAlice, file, IoMode::kReadWrite, kBlock, 4096).error(), Status::kLayoutTryLater);
  EXPECT_TRUE(revoked);
  world.brick.release();
  world.settle();
  EXPECT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, kBlock, 4096));
}

TEST_F(ManyGrantsTold, ARevocationIsOneWhenNobodyCanTell) {
  world.mds->layouts().revoke_layout(kAlice, file, [](std::optional<size_t>) {});
  turn();
  world.plug.down(world.kBrick);
  world.settle();
  EXPECT_EQ(dying(), kGrants);
  EXPECT_TRUE(world.recaller.revoked.contains(kAlice));
  EXPECT_EQ(find(), Status::kAdminRevoked);
}

TEST_F(ManyGrantsTold, NobodyIsToldThatAClientIsRevokedThatIsGone) {
  world.mds->layouts().revoke_layout(kAlice, file, [](std::optional<size_t>) {});
  turn();
  const auto gone = alice_goes();
  world.settle();
  release();
  EXPECT_TRUE(*gone);
  EXPECT_TRUE(world.recaller.revoked.empty());
  EXPECT_EQ(test(), Status::kBadStateid);
}

// --- on two bricks, behind a restart ---

struct GrantsOnTwoBricks : ::testing::Test {
  static constexpr uint64_t kEach = 2 * kGrantsPerPiece;
  static constexpr size_t kOthers = 4;  // records of other files
  LayoutWorld world{64, {64}};
  InodeId file = world.create("f");
  FakeBrick& second = world.others[0];

  // In turn on the one and the other.
  void SetUp() override {
    // A session with each.
    ASSERT_TRUE(world.get(kAlice, world.create("one"), IoMode::kReadWrite, 0, 4096, 4096));
    ASSERT_TRUE(world.get(kAlice, world.create("two"), IoMode::kReadWrite, 0, 4096, 4096));
    ASSERT_TRUE(world.brick.sessions.contains(kAlice) && second.sessions.contains(kAlice));
    HeldLayout& layout = table().add(file, kAlice, {std::byte{kLayoutStateidTag}});
    for (uint64_t i = 0; i < 2 * kEach; ++i) {
      FakeBrick& brick = i % 2 == 0 ? world.brick : second;
      const uint64_t zone = i % 2 == 0 ? 0 : uint64_t{1} << 48;
      const uint64_t number = 1'000'000 + i;
      const uint64_t offset = (uint64_t{1} << 30) + i * kGrainSize;
      table().add_grant(layout, {.grant = number,
                                 .file = {offset, offset + kGrainSize},
                                 .logical = zone + offset,
                                 .writable = true});
      brick.grants[number] = {kAlice, {number, zone + offset, kGrainSize, true, 0x100, 0x7000000}};
    }
    table().advance(layout);
    ASSERT_TRUE(LayoutRecords(world.store).told(layout, layout.grants()));
    world.crash();
    world.build();
    world.brick.hold_withdrawals = true;
  }
  void first_is_there() {
    world.plug.up(world.kBrick);
    world.settle();
    ASSERT_NE(table().find(file, kAlice), nullptr);
  }
  LayoutTable& table() { return const_cast<LayoutTable&>(world.mds->table()); }
  std::shared_ptr<bool> give_back(const ByteRange& range) {
    auto done = std::make_shared<bool>(false);
    world.mds->layouts().give_back(kAlice, file, range, IoMode::kAny, [done] { *done = true; });
    return done;
  }
  size_t records() {
    size_t count = 0;
    EXPECT_TRUE(Records(world.store).scan(RecordKind::kHeldLayout, [&](auto, auto) { return ++count > 0; }));
    return count;
  }
};

TEST_F(GrantsOnTwoBricks, AReturnIsAnsweredWhenTheBrickThatIsThereHasAnswered) {
  first_is_there();
  const auto done = give_back(kAll);
  world.settle();
  EXPECT_FALSE(*done);
  EXPECT_EQ(world.brick.count("withdraw"), kEach / kGrantsPerPiece);
  world.brick.release();
  world.settle();
  EXPECT_TRUE(*done);
  EXPECT_TRUE(table().in_use(file)) << "what the other one has is dying until that is back";
}

TEST_F(GrantsOnTwoBricks, AReturnIsAnsweredWhenTheOtherBrickIsLostToo) {
  first_is_there();
  const auto done = give_back(kAll);
  world.settle();
  EXPECT_FALSE(*done);
  world.plug.down(world.kBrick);
  world.settle();
  EXPECT_TRUE(*done);
}

// What was answered is not taken over.
TEST_F(GrantsOnTwoBricks, NothingThatIsReturnedIsOnRecordWhenThatIsAnswered) {
  const uint64_t end = (uint64_t{1} << 30) + (2 * kEach - 1) * kGrainSize;
  const auto done = give_back({0, end});
  for (int i = 0; i < 100 && !*done; ++i) {
    EXPECT_GT(records(), kOthers + 2);
    world.loop.run_once(Milliseconds(0));
  }
  EXPECT_TRUE(*done);
  EXPECT_EQ(records(), kOthers + 2) << "the layout, and the grant that is held";
}

// --- many holders of one file ---

// All is asked for soon, whoever answers; and who gives it back unasked is not asked.
TEST(ManyHolders, AreAskedSoManyATurn) {
  constexpr uint64_t kClients = 500;
  constexpr size_t kPerTurn = 64;
  LayoutWorld world;
  const InodeId file = world.create("f");
  auto& table = const_cast<LayoutTable&>(world.mds->table());
  for (uint64_t client = 1; client <= kClients; ++client) {
    std::array<std::byte, 12> other{};
    store_big_endian(other.data() + 4, client);
    HeldLayout& layout = table.add(file, client, other);
    layout.add_hole({0, kGrainSize});
    table.advance(layout);
  }
  std::optional<bool> cleared;
  world.mds->layouts().clear(file, kAll, kBob, [&](bool all) { cleared = all; });
  EXPECT_EQ(world.recaller.recalls.size(), kPerTurn);
  world.mds->layouts().give_back(kClients, file, kAll, IoMode::kAny, [] {});
  for (size_t turn = 0; turn < kClients / kPerTurn; ++turn) {
    const size_t before = world.recaller.recalls.size();
    world.loop.run_once(Milliseconds(0));
    EXPECT_LE(world.recaller.recalls.size() - before, kPerTurn);
  }
  EXPECT_EQ(world.recaller.recalls.size(), kClients - 1);
  EXPECT_FALSE(cleared);
  for (uint64_t client = 1; client < kClients; ++client)
    world.mds->layouts().give_back(client, file, kAll, IoMode::kAny, [] {});
  world.settle();
  EXPECT_EQ(cleared, true);
}

// --- LAYOUTRETURN4_ALL ---

struct ManyLayouts : ::testing::Test {
  static constexpr size_t kFiles = 500;
  static constexpr uint64_t kFirst = 1'000'000;
  LayoutWorld world;

  void SetUp() override {
    for (size_t i = 0; i < kFiles; ++i) add(kFirst + i);
  }
  LayoutTable& table() { return const_cast<LayoutTable&>(world.mds->table()); }
  HeldLayout& add(InodeId inode) {
    std::array<std::byte, 12> other{};
    store_big_endian(other.data() + 4, inode);
    other[0] = kLayoutStateidTag;
    HeldLayout& layout = table().add(inode, kAlice, other);
    layout.add_hole({0, kGrainSize});
    table().advance(layout);
    return layout;
  }
};

// A recall tells of nothing new, nor does the answer to the return of a part.
TEST_F(ManyLayouts, WhatWasOnlyRecalledMeanwhileIsReturnedWithAll) {
  bool done = false;
  world.mds->layouts().give_back_all(kAlice, IoMode::kAny, [&] { done = true; });
  world.mds->layouts().recall_layout(kAlice, kFirst + kFiles - 1);
  ASSERT_EQ(world.recaller.recalls.size(), 1u);
  const StateidOther other = table().find(kFirst + kFiles - 2, kAlice)->stateid().other;
  ASSERT_TRUE(world.mds->layouts().stateid_left(kAlice, kFirst + kFiles - 2, other));
  world.settle();
  EXPECT_TRUE(done);
  EXPECT_EQ(table().layouts(), 0u);
}

TEST_F(ManyLayouts, AreReturnedSoManyATurn) {
  bool done = false;
  world.mds->layouts().give_back_all(kAlice, IoMode::kAny, [&] { done = true; });
  EXPECT_GE(table().layouts(), kFiles - kLayoutsPerSlice);
  for (int i = 0; i < 100 && !done; ++i) {
    const size_t before = table().layouts();
    world.loop.run_once(Milliseconds(0));
    EXPECT_LE(before - table().layouts(), kLayoutsPerSlice);
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(table().layouts(), 0u);
}

// It is not of what the client had when it said so.
TEST_F(ManyLayouts, WhatIsGrantedBehindTheReturnOfAllIsNotReturned) {
  bool done = false;
  world.mds->layouts().give_back_all(kAlice, IoMode::kAny, [&] { done = true; });
  add(kFirst + kFiles);                                         // a file of which it had none
  table().advance(*table().find(kFirst + kFiles - 1, kAlice));  // one of which it has more now
  world.settle();
  EXPECT_TRUE(done);
  EXPECT_EQ(table().files_of_client(kAlice), (std::vector<uint64_t>{kFirst + kFiles - 1, kFirst + kFiles}));
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
