// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/brick_administration.h"

#include <gtest/gtest.h>

#include "server/mds/admin/block_map.h"
#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using console::BlockState;
using nfs4::Status;

// --- the map ---

TEST(BlockMap, EveryBlockIsCoveredOnceInOrder) {
  const auto runs = map_blocks({{0, 2, brick::BlockUse::kAllocated, 10 * kBlock},
                                {2, 3, brick::BlockUse::kDirty, 0},
                                {5, 1, brick::BlockUse::kClean, 0},
                                {6, 1, brick::BlockUse::kParked, 12 * kBlock}},
                               {});
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].state, BlockState::kData);
  EXPECT_EQ(runs[1].state, BlockState::kFree);
  EXPECT_EQ(runs[1].count, 4u);
  EXPECT_EQ(runs[2].block, 6u);
}

TEST(BlockMap, GrantsCutTheRunsTheyCover) {
  // Eight blocks of data; one reads blocks 1 to 3, another writes a piece of block 3 and all of block 4.
  const auto runs =
      map_blocks({{100, 8, brick::BlockUse::kAllocated, 8 * kBlock}},
                 {{.client = 1, .inode = 7, .memory = {9 * kBlock, 12 * kBlock}},
                  {.client = 2, .inode = 7, .memory = {11 * kBlock + 4096, 13 * kBlock}, .writable = true}});
  ASSERT_EQ(runs.size(), 5u);
  const auto expect = [&](size_t i, uint64_t block, uint64_t count, BlockState state, size_t grants) {
    EXPECT_EQ(runs[i].block, block) << i;
    EXPECT_EQ(runs[i].count, count) << i;
    EXPECT_EQ(runs[i].state, state) << i;
    EXPECT_EQ(runs[i].grants.size(), grants) << i;
  };
  expect(0, 100, 1, BlockState::kData, 0);
  expect(1, 101, 2, BlockState::kGrantedRead, 1);
  expect(2, 103, 1, BlockState::kGrantedWrite, 2);
  expect(3, 104, 1, BlockState::kGrantedWrite, 1);
  expect(4, 105, 3, BlockState::kData, 0);
  EXPECT_EQ(runs[3].grants[0].client, 2u);
}

TEST(BlockMap, ABlockInPartSaysHowManyOfItsBytesAreReached) {
  // 32 KiB across the border of two blocks, twice for the same file; another client writes 4 KiB of them.
  const auto runs = map_blocks(
      {{0, 8, brick::BlockUse::kAllocated, 0}},
      {{.client = 1, .inode = 7, .memory = {2 * kBlock - 16384, 2 * kBlock + 16384}},
       {.client = 1, .inode = 7, .memory = {2 * kBlock - 16384, 2 * kBlock + 4096}, .writable = true},
       {.client = 2, .inode = 7, .memory = {2 * kBlock, 2 * kBlock + 4096}, .writable = true}});
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[1].block, 1u);
  EXPECT_EQ(runs[1].count, 1u);
  EXPECT_EQ(runs[1].reach.bytes, 16384u);
  EXPECT_EQ(runs[1].reach.writable_bytes, 16384u);
  EXPECT_EQ(runs[2].block, 2u);
  EXPECT_EQ(runs[2].reach.bytes, 16384u);
  EXPECT_EQ(runs[2].reach.writable_bytes, 4096u);
  uint64_t of_first = 0;
  for (const auto& run : runs)
    for (const auto& grant : run.grants) of_first += grant.client == 1 ? grant.bytes : 0;
  EXPECT_EQ(of_first, 32768u);
  EXPECT_EQ(runs[3].reach.bytes, 0u);
}

TEST(BlockMap, LogicalNeighboursMayLieApartInTheBrick) {
  const auto runs = map_blocks(
      {{0, 1, brick::BlockUse::kAllocated, 21 * kBlock}, {1, 1, brick::BlockUse::kAllocated, 20 * kBlock}},
      {{.client = 1, .inode = 7, .memory = {20 * kBlock, 22 * kBlock}}});
  ASSERT_EQ(runs.size(), 2u);
  for (const auto& run : runs) EXPECT_EQ(run.state, BlockState::kGrantedRead);
}

// --- bricks that come and go ---

struct Bricks : ::testing::Test {
  LayoutWorld world;
  BrickAdministration& admin() { return world.mds->brick_administration(); }

  std::string hex(BrickNumber number) { return uuid_text(world.brick_of(number).uuid); }
  std::shared_ptr<std::optional<Result<console::Brick>>> add(const std::string& address) {
    auto answer = std::make_shared<std::optional<Result<console::Brick>>>();
    admin().add(address, [answer](Result<console::Brick> got) { *answer = std::move(got); });
    return answer;
  }
  Result<> remove(const std::string& id) {
    auto answer = std::make_shared<std::optional<Result<>>>();
    admin().remove(id, [answer](Result<> got) { *answer = std::move(got); });
    world.settle();
    return answer->value_or(fail(EINPROGRESS, "no answer"));
  }
  Result<BrickAdministration::Holders> holders_of(const std::string& id) {
    auto answer = std::make_shared<std::optional<Result<BrickAdministration::Holders>>>();
    admin().holders(id, [answer](Result<BrickAdministration::Holders> got) { *answer = std::move(got); });
    world.settle();
    return answer->value_or(fail(EINPROGRESS, "no answer"));
  }
  Result<console::Brick> added(uint64_t blocks = 64) {
    const std::string address = world.lend_brick(blocks);
    world.memory->set_zone(static_cast<uint32_t>(world.others.size()), world.others.back());
    const auto answer = add(address);
    world.settle();
    world.plug.up(address);
    world.pass(Milliseconds(200));
    return answer->value_or(fail(EINPROGRESS, "no answer"));
  }
  // Writes files until one is on this brick.
  InodeId file_on(BrickNumber number) {
    for (int i = 0; i < 100; ++i) {
      const InodeId file = world.create("f" + std::to_string(i));
      EXPECT_EQ(world.write(file, 0, std::string(5000, static_cast<char>('A' + file % 26))), Status::kOk);
      if (world.list->brick_of(world.extents(file).front().logical) == number) return file;
    }
    return kNoInode;
  }
};

TEST_F(Bricks, OneIsAddedAndGetsNewFiles) {
  const auto brick = added();
  ASSERT_TRUE(brick) << brick.error().to_string();
  EXPECT_EQ(brick->state, console::BrickState::kReady);
  EXPECT_EQ(brick->id, hex(2));
  EXPECT_NE(file_on(2), kNoInode);
  EXPECT_EQ(admin().bricks().size(), 2u);
  world.check("added");
  world.crash(0);
  world.start();
  EXPECT_EQ(world.list->numbers(), (std::vector<BrickNumber>{1, 2}));
  world.check("restarted");
}

TEST_F(Bricks, OneIsStillFoundByTheIdItHadBeforeItWasReached) {
  ASSERT_EQ(admin().bricks().at(0).id, hex(1));
  ASSERT_NE(file_on(1), kNoInode);
  for (const std::string& id : {hex(1), std::string("new-1")}) {
    EXPECT_EQ(remove(id).error().number(), EBUSY) << id;
    EXPECT_TRUE(holders_of(id)) << id;
  }
  EXPECT_EQ(remove("new-2").error().number(), ENOENT);
}

TEST_F(Bricks, OneThatSaysNothingIsShownAsAwayLongBeforeItIsGivenUp) {
  world.plug.silent_for(LayoutWorld::kBrick, Milliseconds(1900));
  EXPECT_EQ(admin().bricks().at(0).state, console::BrickState::kReady);
  world.plug.silent_for(LayoutWorld::kBrick, Milliseconds(7200));
  EXPECT_EQ(admin().bricks().at(0).state, console::BrickState::kAway);
  EXPECT_EQ(admin().bricks().at(0).detail, "connected, but silent for 7 s");
  EXPECT_TRUE(world.mds->ready());
  world.plug.silent_for(LayoutWorld::kBrick, Milliseconds(0));
  EXPECT_EQ(admin().bricks().at(0).state, console::BrickState::kReady);
}

TEST_F(Bricks, WhatDoesNotAnswerIsNotAdded) {
  const std::string address = world.lend_brick(64);
  const auto answer = add(address);
  world.pass(kAddPatience + Milliseconds(200));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->error().number(), EHOSTUNREACH);
  EXPECT_EQ(world.list->numbers(), std::vector<BrickNumber>{1});
  EXPECT_TRUE(world.mds->ready());
}

TEST_F(Bricks, AnAddressWhereNothingListensIsRefusedAtOnce) {
  const std::string address = world.lend_brick(64);
  const auto answer = add(address);
  world.settle();
  // While it is tried nobody sees a brick of which nothing is known.
  EXPECT_EQ(admin().bricks().size(), 1u);
  world.plug.refuse(address, Error(ENOENT, "connect to " + address));
  world.pass(Milliseconds(100));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->error().number(), EHOSTUNREACH);
  EXPECT_NE((*answer)->error().what().find("No such file or directory"), std::string::npos);
  EXPECT_EQ(world.list->numbers(), std::vector<BrickNumber>{1});
}

TEST_F(Bricks, AnotherServersBrickIsNotAddedAndNotClaimed) {
  const std::string address = world.lend_brick(64);
  world.others[0].owner = "another";
  const auto answer = add(address);
  world.plug.up(address);
  world.pass(Milliseconds(200));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->error().number(), EBUSY);
  EXPECT_NE((*answer)->error().what().find("another"), std::string::npos);
  EXPECT_EQ(world.others[0].count("claim"), 0u);
  EXPECT_EQ(world.list->numbers(), std::vector<BrickNumber>{1});
}

TEST_F(Bricks, OneBrickIsNotAddedTwice) {
  EXPECT_EQ((*add(world.kBrick))->error().number(), EEXIST);
  const std::string address = world.lend_brick(64);
  world.others[0].uuid = world.brick.uuid;
  const auto answer = add(address);
  world.plug.up(address);
  world.pass(Milliseconds(200));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->error().number(), EEXIST);
}

TEST_F(Bricks, AnAddressMustBeOne) {
  for (const char* wrong : {"", "brick", "unix:", "tcp:", "http://x"}) {
    const auto answer = add(wrong);
    ASSERT_TRUE(answer->has_value()) << wrong;
    EXPECT_EQ((*answer)->error().number(), EINVAL) << wrong;
  }
}

TEST_F(Bricks, OneWithDataIsNotRemovedAndSaysWhoHoldsIt) {
  ASSERT_TRUE(added());
  const InodeId file = file_on(2);
  EXPECT_EQ(remove(hex(2)).error().number(), EBUSY);
  const auto holders = holders_of(hex(2));
  ASSERT_TRUE(holders);
  EXPECT_GE(holders->files, 1u);
  EXPECT_GE(holders->bytes, 8192u);
  EXPECT_NE(std::ranges::find(holders->inodes, file), holders->inodes.end());
  // Refused, it goes on as before.
  EXPECT_EQ(world.write(file, 8192, std::string(10, static_cast<char>('A' + file % 26))), Status::kOk);
  world.check("refused");
}

TEST_F(Bricks, WhoHoldsItIsCountedAPageATurn) {
  ASSERT_TRUE(added());
  const InodeId file = file_on(2);
  const uint64_t logical = world.extents(file).front().logical;
  constexpr size_t kMany = 2 * BrickAdministration::kExtentsPerTurn + 1;
  ExtentChange change(world.store, file + 1000);
  for (size_t i = 0; i < kMany; ++i) ASSERT_TRUE(change.insert({2 * i * kGrainSize, logical, kGrainSize}));
  Batch batch;
  change.write_to(batch);
  ASSERT_TRUE(world.store.commit(batch, CommitKind::kNamespace));

  std::optional<Result<BrickAdministration::Holders>> answer;
  admin().holders(hex(2), [&](Result<BrickAdministration::Holders> got) { answer = std::move(got); });
  size_t turns = 0;
  for (; !answer && turns < 100; ++turns) world.loop.run_once(Milliseconds(0));
  ASSERT_TRUE(answer);
  EXPECT_EQ(turns, 2u) << "behind the first page, a turn for each";
  EXPECT_GE((*answer)->bytes, kMany * kGrainSize);
  EXPECT_NE(std::ranges::find((*answer)->inodes, file + 1000), (*answer)->inodes.end());
}

TEST_F(Bricks, AnEmptyOneIsRemovedAndGivenUp) {
  ASSERT_TRUE(added());
  const std::string id = hex(2);
  ASSERT_TRUE(remove(id));
  EXPECT_EQ(world.others[0].owner, "");
  EXPECT_EQ(admin().find(id).error().number(), ENOENT);
  EXPECT_EQ(file_on(2), kNoInode);
  EXPECT_EQ(remove(id).error().number(), ENOENT);
  // Whoever comes next may have it: we ourselves, too.
  const auto again = add(world.addresses()[1]);
  world.plug.up(world.addresses()[1]);
  world.pass(Milliseconds(200));
  ASSERT_TRUE(again->has_value() && **again) << (*again)->error().to_string();
}

TEST_F(Bricks, ADrainingOneGetsNothingNewAndKeepsWhatItHas) {
  ASSERT_TRUE(added());
  const InodeId file = file_on(2);
  Result<> drained = fail(EINPROGRESS, "no answer");
  admin().set_draining(hex(2), true, [&](Result<> got) { drained = std::move(got); });
  world.settle();
  ASSERT_TRUE(drained);
  EXPECT_EQ(admin().bricks()[1].state, console::BrickState::kDraining);
  const size_t before = world.others[0].blocks.size();
  for (int i = 0; i < 20; ++i) {
    const InodeId other = world.create("g" + std::to_string(i));
    ASSERT_EQ(world.write(other, 0, std::string(5000, static_cast<char>('A' + other % 26))), Status::kOk);
  }
  EXPECT_EQ(world.others[0].blocks.size(), before);
  EXPECT_EQ(world.read(file, 0, 1), std::string(1, static_cast<char>('A' + file % 26)));
  world.crash(0);
  world.start();
  EXPECT_EQ(admin().bricks()[1].state, console::BrickState::kDraining);
}

TEST_F(Bricks, TheMapNamesWhoCanReachWhat) {
  const InodeId file = world.create("f");
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  std::optional<Result<console::BlockMap>> map;
  const auto name = [](MappedGrant& grant) { grant.client_name = "alice"; };
  const auto take = [&](const Result<BrickAdministration::Later<console::BlockMap>>& rest) {
    map = rest ? Result<console::BlockMap>((*rest)()) : std::unexpected(rest.error());
  };
  admin().block_map(hex(1), name, take);
  world.settle();
  ASSERT_TRUE(map && *map);
  EXPECT_EQ((*map)->blocks, 64u);
  ASSERT_EQ((*map)->runs.size(), 2u);
  EXPECT_EQ((*map)->runs[0].state, BlockState::kGrantedWrite);
  EXPECT_EQ((*map)->runs[0].grants.at(0).client, kAlice);
  EXPECT_EQ((*map)->runs[0].grants.at(0).client_name, "alice");
  EXPECT_EQ((*map)->runs[0].grants.at(0).inode, file);
  EXPECT_EQ((*map)->runs[1].state, BlockState::kFree);
  EXPECT_EQ((*map)->runs[1].count, 63u);
  world.plug.down(world.kBrick);
  admin().block_map(hex(1), name, take);
  world.settle();
  EXPECT_EQ(map->error().number(), EAGAIN);
}

TEST_F(Bricks, AwayAndForeignOnesAreShownAsThat) {
  EXPECT_EQ(admin().bricks()[0].state, console::BrickState::kReady);
  EXPECT_EQ(admin().bricks()[0].detail, "");
  world.plug.down(world.kBrick);
  EXPECT_EQ(admin().bricks()[0].state, console::BrickState::kAway);
  world.brick.owner = "another";
  world.plug.up(world.kBrick);
  world.settle();
  EXPECT_EQ(admin().bricks()[0].state, console::BrickState::kForeign);
  EXPECT_NE(admin().bricks()[0].detail.find("another"), std::string::npos);
}

TEST_F(Bricks, WhatWouldBeRefusedSaysSoBeforehand) {
  EXPECT_EQ(admin().bricks()[0].remove_refusal, "");
  EXPECT_EQ(admin().bricks()[0].format_refusal, "");
  ASSERT_EQ(world.write(world.create("f"), 0, "x"), Status::kOk);
  EXPECT_NE(admin().bricks()[0].remove_refusal, "");
  EXPECT_NE(admin().bricks()[0].format_refusal, "");
}

TEST_F(Bricks, OneThatIsAwayIsNotFormatted) {
  world.plug.down(world.kBrick);
  EXPECT_EQ(admin().bricks()[0].format_refusal, "It is away: only a connected brick can be formatted.");
  EXPECT_EQ(admin().bricks()[0].remove_refusal, "");
}

TEST_F(Bricks, ANameStaysAndBelongsToOne) {
  ASSERT_TRUE(added());
  const auto name = [&](BrickNumber number, const std::string& text) {
    std::optional<Result<>> answer;
    admin().set_name(hex(number), text, [&](Result<> got) { answer = std::move(got); });
    world.settle();
    return answer.value_or(fail(EINPROGRESS, "no answer"));
  };
  ASSERT_TRUE(name(1, "rack 3 left"));
  EXPECT_EQ(name(2, "rack 3 left").error().number(), EEXIST);
  EXPECT_EQ(name(2, std::string(65, 'x')).error().number(), EINVAL);
  world.crash(0);
  world.start();
  EXPECT_EQ(admin().bricks()[0].name, "rack 3 left");
  EXPECT_EQ(admin().bricks()[1].name, "");
  ASSERT_TRUE(name(1, ""));
  EXPECT_EQ(admin().bricks()[0].name, "");
}

// --- jobs ---

struct BrickJobs : Bricks {
  std::vector<double> progress;
  std::optional<Result<std::string>> outcome;

  BrickJobEvents events() {
    return {.on_progress = [this](double now, const std::string&) { progress.push_back(now); },
            .on_end =
                [this](Result<std::string> end) {
                  EXPECT_FALSE(outcome);
                  outcome = std::move(end);
                }};
  }
};

TEST_F(BrickJobs, AnUnusedBrickIsFormatted) {
  admin().format(hex(1), events());
  world.pass(Milliseconds(1000));
  ASSERT_TRUE(outcome && *outcome) << outcome->error().to_string();
  EXPECT_EQ(world.brick.erased, 64u);
  EXPECT_TRUE(std::ranges::is_sorted(progress));
  EXPECT_EQ(world.write(world.create("f"), 0, "x"), Status::kOk);  // open again
}

TEST_F(BrickJobs, ABrickWithDataIsNotFormatted) {
  ASSERT_EQ(world.write(world.create("f"), 0, "x"), Status::kOk);
  admin().format(hex(1), events());
  world.pass(Milliseconds(1000));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->error().number(), EBUSY);
  EXPECT_EQ(world.brick.erased, 0u);
}

TEST_F(BrickJobs, WhileABrickIsFormattedNothingIsPutOnIt) {
  world.brick.dead = true;  // it takes its time
  const CancelJob cancel = admin().format(hex(1), events());
  world.settle();
  EXPECT_EQ(world.write(world.create("f"), 0, "x"), Status::kNoSpc);
}

TEST_F(BrickJobs, ACancelledOneEndsOnce) {
  const CancelJob cancel = admin().format(hex(1), events());
  cancel();
  cancel();
  world.pass(Milliseconds(1000));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->error().number(), ECANCELED);
  EXPECT_EQ(world.write(world.create("f"), 0, "x"), Status::kOk);
}

TEST_F(BrickJobs, OneEndsWhenItsBrickGoesAway) {
  admin().check(hex(1), events());
  world.plug.down(world.kBrick);
  world.pass(Milliseconds(100));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->error().number(), EAGAIN);
}

TEST_F(BrickJobs, ASoundBrickIsFoundSound) {
  ASSERT_EQ(world.write(world.create("f"), 0, "x"), Status::kOk);
  admin().check(hex(1), events());
  world.pass(kCheckPause + Milliseconds(500));
  ASSERT_TRUE(outcome && *outcome) << outcome->error().to_string();
}

TEST_F(BrickJobs, LeakedAndMissingBlocksAreFound) {
  ASSERT_EQ(world.write(world.create("f"), 0, "x"), Status::kOk);
  world.brick.blocks.erase(world.brick.blocks.begin());
  world.brick.blocks.insert(1000 * kBlock);
  admin().check(hex(1), events());
  world.pass(kCheckPause + Milliseconds(500));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->error().number(), EUCLEAN);
  EXPECT_NE(outcome->error().what().find("1 missing"), std::string::npos) << outcome->error().what();
  EXPECT_NE(outcome->error().what().find("1 in no file"), std::string::npos);
}

TEST_F(BrickJobs, AnUnknownBrickHasNoJobs) {
  admin().check("nobody", events());
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->error().number(), ENOENT);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
