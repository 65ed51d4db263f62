// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/mds/meta/records.h"
#include "tests/unit/mds/layout/layout_world.h"

// The MDS dies and is started again on the same boot of the host, while the brick lives: which layouts its clients
// still have.
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

constexpr uint64_t kMib = 1 << 20;

struct Adoption : ::testing::Test {
  LayoutWorld world;
  InodeId file = world.create("f");

  Adoption() { world.obey_recalls(); }

  void restart() {
    world.crash();
    world.brick.calls.clear();
    world.start();
    world.obey_recalls();
    world.pass(Milliseconds(200));  // what was revoked rests
  }
  LayoutGranter::Answer write_layout(uint64_t client, uint64_t offset = 0, uint64_t length = kMib) {
    return world.get(client, file, IoMode::kReadWrite, offset, length, length);
  }
  uint64_t grant_of(const LayoutGranter::Answer& answer) {
    const auto segments = LayoutWorld::segments(answer);
    return segments.empty() ? 0 : segments.front().read.grant;
  }
  bool alive(uint64_t grant) { return world.brick.grants.contains(grant); }
  const HeldLayout* layout_of(uint64_t client) { return world.mds->table().find(file, client); }
  Status test(uint64_t client, const LayoutStateid& stateid) {
    return world.mds->conflicts().test_stateid(client, stateid);
  }
  size_t records(RecordKind kind) {
    size_t count = 0;
    EXPECT_TRUE(Records(world.store).scan(kind, [&](auto, auto) { return ++count > 0; }));
    return count;
  }
  uint64_t change() { return world.stat(file)->change; }
};

TEST_F(Adoption, ALayoutAndItsHandlesLiveOn) {
  const auto before = write_layout(kAlice);
  ASSERT_TRUE(before);
  const uint64_t grant = grant_of(before);
  const uint64_t change_before = change();
  restart();
  EXPECT_TRUE(world.mds->ready());
  EXPECT_EQ(world.brick.count("close_session"), 0u);
  EXPECT_EQ(world.brick.count("withdraw"), 0u);
  EXPECT_TRUE(alive(grant));
  EXPECT_TRUE(world.recaller.revoked.empty());
  // Nobody is told of a change by the restart alone.
  EXPECT_EQ(change(), change_before);
  const LayoutStateid stateid = LayoutWorld::stateid_of(before);
  EXPECT_EQ(test(kAlice, stateid), Status::kOk);
  EXPECT_TRUE(world.brick.client_write(kAlice, grant, 0, static_cast<std::byte>('A' + file % 26), 5000));
  EXPECT_EQ(world.commit(kAlice, file, stateid, {0, 5000}, 4999, {{0, 5000}}), Status::kOk);
  EXPECT_EQ(world.stat(file)->size, 5000u);
  world.check("committed");
  // The same grant once more, with the handle that it has.
  const auto again = write_layout(kAlice);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->stateid.other, before->stateid.other);
  EXPECT_GT(again->stateid.seqid, before->stateid.seqid);
  EXPECT_EQ(LayoutWorld::segments(again), LayoutWorld::segments(before));
  EXPECT_EQ(world.brick.count("open_session"), 0u);
  EXPECT_TRUE(world.give_back(kAlice, file));
  EXPECT_FALSE(alive(grant));
  EXPECT_EQ(records(RecordKind::kHeldLayout), 0u);
  world.check("returned");
}

TEST_F(Adoption, ItIsRecalledByWhoeverIsInItsWay) {
  const auto before = write_layout(kAlice);
  EXPECT_EQ(world.commit(kAlice, file, LayoutWorld::stateid_of(before), {0, kMib}, kMib - 1), Status::kOk);
  restart();
  EXPECT_EQ(world.set_size(file, 0), Status::kOk);
  ASSERT_EQ(world.recaller.recalls.size(), 1u);
  EXPECT_EQ(world.recaller.recalls[0].client, kAlice);
  EXPECT_EQ(world.recaller.recalls[0].stateid.other, before->stateid.other);
  EXPECT_GT(world.recaller.recalls[0].stateid.seqid, before->stateid.seqid);
  EXPECT_FALSE(alive(grant_of(before)));
  world.check("cut");
}

TEST_F(Adoption, BeforeTheBrickHasSpokenNothingOfItMoves) {
  const auto before = write_layout(kAlice);
  EXPECT_EQ(world.commit(kAlice, file, LayoutWorld::stateid_of(before), {0, kMib}, kMib - 1), Status::kOk);
  world.crash();
  world.build();
  world.settle();
  world.brick.calls.clear();
  ASSERT_NE(layout_of(kAlice), nullptr);
  EXPECT_EQ(world.set_size(file, 0), Status::kDelay);
  EXPECT_EQ(world.get(kBob, file, IoMode::kRead, 0, kMib).error(), Status::kLayoutTryLater);
  EXPECT_NE(world.commit(kAlice, file, LayoutWorld::stateid_of(before), {0, 2 * kMib}, kMib), Status::kOk);
  EXPECT_TRUE(world.brick.calls.empty());
  EXPECT_TRUE(alive(grant_of(before)));
  world.plug.up(LayoutWorld::kBrick);
  world.settle();
  EXPECT_TRUE(alive(grant_of(before)));
  world.check("ready");
}

TEST_F(Adoption, WhatIsGivenBackMeanwhileIsWithdrawnThen) {
  const auto before = write_layout(kAlice);
  world.crash();
  world.build();
  world.settle();
  bool returned = false;
  world.mds->layouts().give_back(kAlice, file, {0, kEndOfFile}, IoMode::kAny, [&] { returned = true; });
  world.settle();
  EXPECT_TRUE(alive(grant_of(before)));
  world.plug.up(LayoutWorld::kBrick);
  world.settle();
  EXPECT_TRUE(returned);
  EXPECT_FALSE(alive(grant_of(before)));
  EXPECT_EQ(world.brick.count("close_session"), 0u);
  world.check("ready");
}

TEST_F(Adoption, AGrantThatNoAnswerHasToldIsWithdrawn) {
  // The brick has exposed it, and the MDS dies before it hears of that.
  world.brick.behind_call = [&] { return world.brick.calls.back() != "expose"; };
  EXPECT_FALSE(write_layout(kAlice));
  ASSERT_EQ(world.brick.grants.size(), 1u);
  world.brick.behind_call = [] { return true; };
  restart();
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_EQ(world.brick.count("withdraw"), 1u);
  world.check("ready");
}

TEST_F(Adoption, OneThatCannotBePutOnRecordIsNotTold) {
  world.store.before_commit = [&] { return world.brick.count("expose") == 0; };
  EXPECT_EQ(write_layout(kAlice).error(), Status::kLayoutTryLater);
  world.store.before_commit = [] { return true; };
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_EQ(layout_of(kAlice), nullptr);
}

TEST_F(Adoption, AReturnedOneIsWithdrawnThoughTheMdsDiedOnTheWay) {
  const auto before = write_layout(kAlice);
  world.brick.before_call = [] { return false; };
  EXPECT_FALSE(world.give_back(kAlice, file));
  world.brick.before_call = [] { return true; };
  ASSERT_TRUE(alive(grant_of(before)));
  restart();
  EXPECT_FALSE(alive(grant_of(before)));
  EXPECT_EQ(layout_of(kAlice), nullptr);
  world.check("ready");
}

TEST_F(Adoption, ALayoutIsVoidWithoutOneOfItsGrants) {
  world.brick.longest_run = 1;
  const auto before = write_layout(kAlice, 0, 2 * kBlock);
  const auto segments = LayoutWorld::segments(before);
  ASSERT_GE(segments.size(), 2u);
  const auto writers = change();
  world.crash();
  world.brick.grants.erase(segments[1].read.grant);
  world.start();
  world.pass(Milliseconds(200));
  EXPECT_EQ(layout_of(kAlice), nullptr);
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_EQ(test(kAlice, LayoutWorld::stateid_of(before)), Status::kAdminRevoked);
  EXPECT_TRUE(world.recaller.revoked.contains(kAlice));
  EXPECT_EQ(world.brick.count("close_session"), 0u);
  // It may have written what nobody knows of.
  EXPECT_NE(change(), writers);
  EXPECT_EQ(records(RecordKind::kHeldLayout), 0u);
  world.check("ready");
}

TEST_F(Adoption, NorIsAGrantKeptThatIsNotAsItWas) {
  const auto before = write_layout(kAlice);
  world.crash();
  world.brick.grants.at(grant_of(before)).grant.length -= kGrainSize;
  world.start();
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_EQ(layout_of(kAlice), nullptr);
}

TEST_F(Adoption, ABrickThatWasStartedAgainHasNone) {
  const auto before = write_layout(kAlice);
  world.crash();
  world.brick.restart();
  world.start();
  world.pass(Milliseconds(200));
  EXPECT_EQ(layout_of(kAlice), nullptr);
  EXPECT_EQ(test(kAlice, LayoutWorld::stateid_of(before)), Status::kAdminRevoked);
  world.check("ready");
  EXPECT_TRUE(write_layout(kAlice));
}

TEST_F(Adoption, AnotherBootOfTheHostForgetsAll) {
  const auto before = write_layout(kAlice);
  world.crash(world.store.unsynced());
  world.brick.calls.clear();
  world.start();
  EXPECT_EQ(world.brick.count("close_session"), 1u);
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_EQ(layout_of(kAlice), nullptr);
  EXPECT_EQ(test(kAlice, LayoutWorld::stateid_of(before)), Status::kBadStateid);
  EXPECT_EQ(records(RecordKind::kHeldLayout) + records(RecordKind::kTicket), 0u);
  world.check("ready");
}

TEST_F(Adoption, SoIsAClientThatIsNotKnownAnyMore) {
  const auto alice = write_layout(kAlice, 0, 4096);
  const auto bob = write_layout(kBob, 0, 4096);
  world.unknown = {kBob};
  restart();
  EXPECT_EQ(world.brick.sessions, std::set<uint64_t>{kAlice});
  EXPECT_TRUE(alive(grant_of(alice)));
  EXPECT_FALSE(alive(grant_of(bob)));
  EXPECT_EQ(layout_of(kBob), nullptr);
  EXPECT_EQ(records(RecordKind::kTicket), 1u);
}

TEST_F(Adoption, AClientThatEndsBeforeTheBrickIsThereIsClosed) {
  const auto before = write_layout(kAlice);
  world.crash();
  world.build();
  world.settle();
  world.mds->conflicts().on_client_gone(kAlice, [] {});
  world.settle();
  world.plug.up(LayoutWorld::kBrick);
  world.pass(Milliseconds(200));
  EXPECT_FALSE(alive(grant_of(before)));
  EXPECT_TRUE(world.brick.sessions.empty());
  EXPECT_EQ(records(RecordKind::kTicket) + records(RecordKind::kHeldLayout), 0u);
  world.check("ready");
}

TEST_F(Adoption, AConnectionThatIsLostMeanwhileEndsThem) {
  const auto before = write_layout(kAlice);
  world.crash();
  world.brick.behind_call = [&] { return world.brick.calls.back() != "list_grants"; };
  world.start();
  EXPECT_FALSE(world.mds->ready());
  world.brick.behind_call = [] { return true; };
  world.plug.up(LayoutWorld::kBrick);
  world.pass(Milliseconds(200));
  EXPECT_TRUE(world.mds->ready());
  EXPECT_FALSE(alive(grant_of(before)));
  EXPECT_EQ(test(kAlice, LayoutWorld::stateid_of(before)), Status::kAdminRevoked);
  world.check("ready");
}

TEST_F(Adoption, GrantsAreToldPageByPage) {
  world.brick.grants_per_page = 2;
  std::vector<uint64_t> grants;
  for (const uint64_t client : {kAlice, kBob}) {
    for (int i = 0; i < 5; ++i) {
      const InodeId one = world.create("g" + std::to_string(client) + std::to_string(i));
      grants.push_back(grant_of(world.get(client, one, IoMode::kReadWrite, 0, kMib, kMib)));
    }
  }
  restart();
  EXPECT_EQ(world.brick.count("list_grants"), 6u);  // 2, 2 and 1 of each
  EXPECT_EQ(world.brick.count("withdraw"), 0u);
  for (const uint64_t grant : grants) EXPECT_TRUE(alive(grant));
  EXPECT_TRUE(world.recaller.revoked.empty());
  world.check("ready");
}

TEST_F(Adoption, TheTicketStays) {
  std::optional<Ticket> first;
  std::optional<Ticket> second;
  BrickDevice* device = world.mds->bricks().all().front();
  device->open_session(kAlice, [&](BrickDevice::Answer<Ticket> ticket) { first = *ticket; });
  world.settle();
  restart();
  device = world.mds->bricks().all().front();
  device->open_session(kAlice, [&](BrickDevice::Answer<Ticket> ticket) { second = *ticket; });
  world.settle();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
}

TEST_F(Adoption, OfAPartThatWasReturnedTheRestIsRevoked) {
  const auto before = write_layout(kAlice, 0, kMib);
  world.give_back(kAlice, file, 0, 4096);
  ASSERT_TRUE(alive(grant_of(before)));
  restart();
  EXPECT_FALSE(alive(grant_of(before)));
  EXPECT_EQ(layout_of(kAlice), nullptr);
  world.check("ready");
}

TEST_F(Adoption, ARecallThatWasUnderWayCanBeAnswered) {
  const auto before = write_layout(kAlice);
  EXPECT_EQ(world.commit(kAlice, file, LayoutWorld::stateid_of(before), {0, kMib}, kMib - 1), Status::kOk);
  world.recaller.on_recall = nullptr;
  EXPECT_EQ(world.set_size(file, 4096), std::nullopt);
  ASSERT_EQ(world.recaller.recalls.size(), 1u);
  restart();
  const LayoutStateid recalled = world.recaller.recalls[0].stateid;
  EXPECT_EQ(test(kAlice, recalled), Status::kOk);
  // A size from before it may be one from before the file was cut.
  EXPECT_EQ(world.commit(kAlice, file, LayoutWorld::stateid_of(before), {0, 2 * kMib}, kMib),
            Status::kBadStateid);
  EXPECT_TRUE(world.give_back(kAlice, file));
  EXPECT_EQ(world.set_size(file, 4096), Status::kOk);
  world.check("cut");
}

// A recall puts it on record before any answer has told of it: of two grants the first has come.
TEST_F(Adoption, ALayoutOfWhichNothingWasToldIsForgotten) {
  const InodeId other = world.create("other");
  const std::string bytes(kBlock, static_cast<char>('A' + file % 26));
  ASSERT_EQ(world.write(file, 0, bytes), Status::kOk);
  ASSERT_EQ(world.write(other, 0, std::string(kBlock, static_cast<char>('A' + other % 26))), Status::kOk);
  ASSERT_EQ(world.write(file, kBlock, bytes), Status::kOk);
  bool recalled = false;
  world.brick.before_call = [&] {
    const HeldLayout* const layout = layout_of(kAlice);
    if (recalled || layout == nullptr || layout->empty()) return !recalled;
    world.mds->layouts().recall_layout(kAlice, file);
    recalled = true;
    return false;
  };
  world.recaller.on_recall = nullptr;
  EXPECT_FALSE(world.get(kAlice, file, IoMode::kRead, 0, 2 * kBlock, 2 * kBlock));
  ASSERT_TRUE(recalled);
  ASSERT_EQ(records(RecordKind::kHeldLayout), 1u);
  world.brick.before_call = [] { return true; };
  restart();
  EXPECT_EQ(layout_of(kAlice), nullptr);
  EXPECT_EQ(records(RecordKind::kHeldLayout), 0u);
  EXPECT_TRUE(world.recaller.revoked.empty());
  ASSERT_TRUE(world.names->remove(kRootInode, "f"));
  world.mds->conflicts().on_orphaned(file);
  world.pass(Milliseconds(200));
  EXPECT_FALSE(world.names->get(file));
}

// What a client is told of its stateid is on record.
TEST_F(Adoption, ARecallIsSentWhenItIsOnRecord) {
  const auto before = write_layout(kAlice);
  world.recaller.on_recall = nullptr;
  world.store.before_commit = [] { return false; };
  world.mds->layouts().recall_layout(kAlice, file);
  world.settle();
  EXPECT_TRUE(world.recaller.recalls.empty());
  world.store.before_commit = [] { return true; };
  world.pass(Milliseconds(1100));
  ASSERT_EQ(world.recaller.recalls.size(), 1u);
  restart();
  EXPECT_EQ(test(kAlice, world.recaller.recalls[0].stateid), Status::kOk);
}

TEST_F(Adoption, AStateidThatCannotBePutOnRecordIsNotTold) {
  const auto before = write_layout(kAlice);
  world.store.before_commit = [] { return false; };
  const StateidOther other = before->stateid.other;
  EXPECT_EQ(world.mds->layouts().stateid_left(kAlice, file, other).error(), Status::kDelay);
  world.store.before_commit = [] { return true; };
  const auto told = world.mds->layouts().stateid_left(kAlice, file, other);
  ASSERT_TRUE(told && *told);
  restart();
  EXPECT_EQ(test(kAlice, **told), Status::kOk);
}

// Its key names the client and the file; those of a layout that ended are of another stateid.
TEST_F(Adoption, AGrantOnRecordIsOfItsLayoutAndOfNoLaterOne) {
  const auto first = write_layout(kAlice);
  std::vector<std::pair<std::string, std::string>> grants;
  ASSERT_TRUE(Records(world.store).scan(RecordKind::kHeldLayout, [&](auto key, auto value) {
    grants.emplace_back(key, value);
    return true;
  }));
  ASSERT_EQ(grants.size(), 2u);
  const FakeBrick::LiveGrant dying = world.brick.grants.at(grant_of(first));
  EXPECT_TRUE(world.give_back(kAlice, file));
  const auto second = write_layout(kAlice, 0, 4096);
  ASSERT_TRUE(second);
  world.crash();
  // The first one's has not been erased, nor withdrawn.
  ASSERT_TRUE(Records(world.store).put(RecordKind::kHeldLayout, grants[1].first, grants[1].second));
  world.brick.grants[dying.grant.grant] = dying;
  world.start();
  EXPECT_FALSE(alive(dying.grant.grant));
  ASSERT_NE(layout_of(kAlice), nullptr);
  EXPECT_EQ(layout_of(kAlice)->stateid().other, second->stateid.other);
  EXPECT_TRUE(alive(grant_of(second)));
  EXPECT_EQ(records(RecordKind::kHeldLayout), 2u);
}

TEST_F(Adoption, WhatAnEndedWriterLeftBesideALivingOneIsZeroed) {
  const auto own = static_cast<std::byte>('A' + file % 26);
  const auto alice = write_layout(kAlice, 0, kGrainSize);
  const auto bob = world.get(kBob, file, IoMode::kReadWrite, kBlock, kBlock, kBlock);
  ASSERT_TRUE(alice && bob);
  const nfs4::Segment bobs = LayoutWorld::segments(bob).front();
  ASSERT_TRUE(world.brick.client_write(kBob, bobs.write.grant, 0, own, kGrainSize));
  const uint64_t logical = world.brick.grants.at(bobs.write.grant).grant.logical;
  // He goes, and the MDS dies before it has zeroed anything.
  world.brick.before_call = [&] { return world.brick.calls.back() != "withdraw"; };
  world.mds->layouts().give_back(kBob, file, {0, kEndOfFile}, IoMode::kAny, [] {});
  world.settle();
  ASSERT_FALSE(alive(bobs.write.grant));
  ASSERT_EQ(world.brick.byte_at(logical), own);
  world.brick.before_call = [] { return true; };
  restart();
  world.pass(Milliseconds(300));
  EXPECT_TRUE(alive(grant_of(alice)));
  EXPECT_EQ(world.brick.byte_at(logical), std::byte{0});
  world.check("ready");
}

TEST_F(Adoption, TheEndOfAFileIsStillHis) {
  world.recaller.opens = {{file, kAlice}};
  world.wants_end = true;
  ASSERT_TRUE(write_layout(kAlice, 0, 4096));
  const uint64_t token = layout_of(kAlice)->end_token();
  ASSERT_NE(token, 0u);
  restart();
  EXPECT_TRUE(world.mds->conflicts().has_sole_writer(file, kBob));
  ASSERT_NE(layout_of(kAlice), nullptr);
  EXPECT_EQ(layout_of(kAlice)->end_token(), token);
  std::optional<Status> opened;
  world.mds->conflicts().before_open_to_write(file, kBob, [&](Status got) { opened = got; });
  world.settle();
  EXPECT_EQ(opened, Status::kOk);
  EXPECT_FALSE(world.mds->conflicts().has_sole_writer(file, kBob));
  EXPECT_EQ(world.recaller.recalls.size(), 1u);
  // Nor has anybody it on record.
  restart();
  EXPECT_FALSE(world.mds->conflicts().has_sole_writer(file, kBob));
}

TEST_F(Adoption, NoTokenIsGivenAgain) {
  world.recaller.opens = {{file, kAlice}};
  world.wants_end = true;
  ASSERT_TRUE(write_layout(kAlice, 0, 4096));
  const uint64_t token = layout_of(kAlice)->end_token();
  EXPECT_TRUE(world.give_back(kAlice, file));
  restart();
  world.recaller.opens = {{file, kAlice}};
  ASSERT_TRUE(write_layout(kAlice, 0, 4096));
  EXPECT_NE(layout_of(kAlice)->end_token(), token);
}

TEST_F(Adoption, WhoReadsAHoleIsAskedBeforeItIsFilled) {
  ASSERT_EQ(world.set_size(file, 64 * kGrainSize), Status::kOk);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kRead, 0, 64 * kGrainSize));
  restart();
  ASSERT_NE(layout_of(kAlice), nullptr);
  EXPECT_TRUE(layout_of(kAlice)->holds_hole({0, kGrainSize}));
  EXPECT_EQ(world.write(file, 0, std::string(100, static_cast<char>('A' + file % 26))), Status::kOk);
  ASSERT_FALSE(world.recaller.recalls.empty());
  EXPECT_EQ(world.recaller.recalls.front().client, kAlice);
  world.check("filled");
}

TEST_F(Adoption, AHoleThatIsNoneAnyMoreIsRevoked) {
  ASSERT_EQ(world.set_size(file, 64 * kGrainSize), Status::kOk);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kRead, 0, 64 * kGrainSize));
  std::string key;
  std::string value;
  ASSERT_TRUE(Records(world.store).scan(RecordKind::kHeldLayout, [&](auto found, auto held) {
    key = found;
    value = held;
    return false;
  }));
  // The hole is filled; she has returned it, but that could not be put on record.
  ASSERT_EQ(world.write(file, 0, std::string(100, static_cast<char>('A' + file % 26))), Status::kOk);
  ASSERT_TRUE(Records(world.store).put(RecordKind::kHeldLayout, key, value));
  restart();
  EXPECT_EQ(layout_of(kAlice), nullptr);
  EXPECT_TRUE(world.recaller.revoked.contains(kAlice));
  world.check("ready");
}

TEST_F(Adoption, RecordsOfARunBeforeTheLastAreNotBelieved) {
  const auto before = write_layout(kAlice);
  world.crash();
  // A program of before, which keeps no such records: one more start.
  ASSERT_TRUE(open_boot(world.store, world.random, world.host_boot));
  world.start();
  EXPECT_EQ(layout_of(kAlice), nullptr);
  EXPECT_FALSE(alive(grant_of(before)));
  EXPECT_TRUE(world.brick.sessions.empty());
  EXPECT_TRUE(world.recaller.revoked.empty());
  EXPECT_EQ(records(RecordKind::kHeldLayout), 0u);
}

TEST_F(Adoption, OneCommitPutsALayoutOnRecord) {
  ASSERT_TRUE(write_layout(kAlice));
  ASSERT_TRUE(write_layout(kBob, 0, 4096));
  world.store.kinds.clear();
  ASSERT_TRUE(write_layout(kBob, 0, 8192));
  EXPECT_EQ(world.store.kinds, std::vector{CommitKind::kState});
  world.store.kinds.clear();
  EXPECT_TRUE(world.give_back(kBob, file));
  EXPECT_EQ(world.store.kinds, std::vector{CommitKind::kState});
}

TEST(AdoptionOfMany, LayoutsAreTakenOverInSlices) {
  LayoutWorld world(512);
  for (int i = 0; i < 200; ++i) {
    const InodeId one = world.create("many" + std::to_string(i));
    ASSERT_TRUE(world.get(kAlice, one, IoMode::kReadWrite, 0, 4096, 4096)) << i;
  }
  const size_t grants = world.brick.grants.size();
  world.crash();
  world.start();
  EXPECT_TRUE(world.mds->ready());
  EXPECT_EQ(world.mds->table().layouts(), 200u);
  EXPECT_EQ(world.brick.grants.size(), grants);
  world.check("ready");
}

// What is void ends in slices as well: a layout costs as many as it has grants.
TEST(AdoptionOfMany, LayoutsOfManyGrantsAreLookedAtFewATurn) {
  constexpr uint64_t kLayouts = 40;
  constexpr uint64_t kGrants = 256;
  LayoutWorld world(512);
  ASSERT_TRUE(world.get(kAlice, world.create("session"), IoMode::kReadWrite, 0, 4096, 4096));
  auto& table = const_cast<LayoutTable&>(world.mds->table());
  for (uint64_t i = 0; i < kLayouts; ++i) {
    std::array<std::byte, 12> other{std::byte{kLayoutStateidTag}};
    store_big_endian(other.data() + 4, i);
    HeldLayout& layout = table.add(world.create("many" + std::to_string(i)), kAlice, other);
    for (uint64_t grant = 0; grant < kGrants; ++grant) {
      const uint64_t offset = (uint64_t{1} << 30) + (i * kGrants + grant) * kGrainSize;
      table.add_grant(layout, {.grant = 1'000'000 + i * kGrants + grant,
                               .file = {offset, offset + kGrainSize},
                               .logical = offset,
                               .writable = true});
    }
    table.advance(layout);
    ASSERT_TRUE(LayoutRecords(world.store).told(layout, layout.grants()));
  }
  world.crash();
  world.build();
  world.plug.up(world.kBrick);
  for (int turn = 0; turn < 200 && !world.mds->ready(); ++turn) {
    const size_t before = world.mds->table().layouts();
    world.loop.run_once(Milliseconds(0));
    EXPECT_LE(before - world.mds->table().layouts(), kLayoutsPerSlice * kGrantsAsALayout / kGrants + 1);
  }
  EXPECT_TRUE(world.mds->ready());
  EXPECT_EQ(world.mds->table().layouts(), 1u);
}

TEST(AdoptionOfMany, OnSeveralBricksEachKeepsItsOwn) {
  LayoutWorld two(8, {8});
  two.obey_recalls();
  const InodeId first = two.create("one");
  const InodeId second = two.create("two");
  ASSERT_TRUE(two.get(kAlice, first, IoMode::kReadWrite, 0, 4096, 4096));
  ASSERT_TRUE(two.get(kAlice, second, IoMode::kReadWrite, 0, 4096, 4096));
  const size_t live = two.brick.grants.size() + two.others[0].grants.size();
  ASSERT_EQ(live, 2u);
  two.crash();
  two.start();
  EXPECT_EQ(two.brick.grants.size() + two.others[0].grants.size(), live);
  EXPECT_EQ(two.mds->table().layouts(), 2u);
  two.check("ready");
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
