// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "server/mds/bricks/brick_set.h"
#include "server/mds/bricks/placement.h"
#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

// --- placement ---

TEST(Placement, AFileStaysOnItsBrick) {
  EXPECT_EQ(order_of({{1, 10}, {2, 1000}, {3, 500}}, 77, 1), (std::vector<BrickNumber>{1, 2, 3}));
}

TEST(Placement, NewFilesSpreadByFreeSpace) {
  size_t second = 0;
  for (InodeId inode = 1; inode <= 1000; ++inode)
    second += order_of({{1, 100}, {2, 300}}, inode, kNoBrick).front() == 2 ? 1 : 0;
  EXPECT_GT(second, 700u);
  EXPECT_LT(second, 800u);
}

TEST(Placement, WithoutRoomAnywhereThereIsStillAnOrder) {
  EXPECT_EQ(order_of({{2, 0}, {1, 0}}, 5, kNoBrick), (std::vector<BrickNumber>{1, 2}));
  EXPECT_TRUE(order_of({}, 5, kNoBrick).empty());
}

// --- two bricks ---

struct TwoBricks : ::testing::Test {
  LayoutWorld world{64, {64}};

  // A file with a block of its own on this brick.
  InodeId file_on(BrickNumber number) {
    for (int i = 0; i < 100; ++i) {
      const InodeId file = world.create("f" + std::to_string(next_++));
      EXPECT_EQ(world.write(file, 0, pattern(file, 300'000)), Status::kOk);
      if (brick_of(file) == number) return file;
    }
    ADD_FAILURE() << "no file on brick " << number;
    return kNoInode;
  }
  static std::string pattern(InodeId file, size_t length) {
    return std::string(length, static_cast<char>('A' + file % 26));
  }
  BrickNumber brick_of(InodeId file) { return world.list->brick_of(world.extents(file).front().logical); }
  std::expected<FileIo::Read, Status> read(InodeId file) {
    std::optional<std::expected<FileIo::Read, Status>> answer;
    world.mds->io().read(file, 0, 10,
                         [&](std::expected<FileIo::Read, Status> got) { answer = std::move(got); });
    world.settle();
    return answer.value_or(std::unexpected(Status::kServerFault));
  }
  void lose(BrickNumber number) {
    world.plug.down(world.addresses().at(number - 1));
    world.settle();
  }
  void find_again(BrickNumber number) {
    world.plug.up(world.addresses().at(number - 1));
    world.settle();
  }

 private:
  int next_ = 0;
};

TEST_F(TwoBricks, BothGetFiles) {
  file_on(1);
  file_on(2);
  EXPECT_FALSE(world.brick.blocks.empty());
  EXPECT_FALSE(world.others[0].blocks.empty());
  world.check("spread");
}

TEST_F(TwoBricks, AFileGrowsWhereItIs) {
  const InodeId file = file_on(2);
  for (uint64_t at = 1; at < 8; ++at)
    ASSERT_EQ(world.write(file, at << 20, pattern(file, 1 << 20)), Status::kOk);
  for (const Extent& extent : world.extents(file)) EXPECT_EQ(world.list->brick_of(extent.logical), 2u);
  world.check("grown");
}

TEST_F(TwoBricks, TheyShareNoSpaceAndTheMountSeesTheSum) {
  const InodeId file = file_on(1);
  EXPECT_EQ(world.mds->data().space().total, 128 * brick::kBlockSize);
  EXPECT_EQ(world.mds->data().space().available, world.mds->data().space().free);
  const auto granted = world.segments(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  ASSERT_FALSE(granted.empty());
  EXPECT_EQ(granted.front().device, world.brick.uuid);
  const auto other = world.segments(world.get(kAlice, file_on(2), IoMode::kRead, 0, 4096));
  ASSERT_FALSE(other.empty());
  EXPECT_EQ(other.front().device, world.others[0].uuid);
}

TEST(SeveralBricks, AFullOneSendsTheFileToTheNext) {
  LayoutWorld world(2, {64});
  const InodeId file = world.create("f");
  const std::string megabyte(1 << 20, static_cast<char>('A' + file % 26));
  for (uint64_t at = 0; at < 16; ++at) ASSERT_EQ(world.write(file, at << 20, megabyte), Status::kOk) << at;
  EXPECT_EQ(world.read(file, 0, 16), megabyte.substr(0, 16));
  EXPECT_EQ(world.read(file, 15 << 20, 16), megabyte.substr(0, 16));
  world.check("spilt");
  EXPECT_EQ(world.set_size(file, 0), Status::kOk);
  world.check("cut");
}

TEST(SeveralBricks, WhenAllAreFullItIsNoSpace) {
  LayoutWorld world(1, {1});
  const InodeId file = world.create("f");
  const std::string megabyte(1 << 20, static_cast<char>('A' + file % 26));
  Status last = Status::kOk;
  for (uint64_t at = 0; at < 8 && last == Status::kOk; ++at) last = world.write(file, at << 20, megabyte);
  EXPECT_EQ(last, Status::kNoSpc);
  world.check("full");
}

TEST_F(TwoBricks, LosingOneDoesNotTouchTheOther) {
  const InodeId here = file_on(1);
  const InodeId there = file_on(2);
  ASSERT_TRUE(world.get(kAlice, here, IoMode::kReadWrite, 0, 4096));
  ASSERT_TRUE(world.get(kAlice, there, IoMode::kReadWrite, 0, 4096));
  lose(1);
  EXPECT_EQ(world.mds->table().find(here, kAlice), nullptr);
  EXPECT_NE(world.mds->table().find(there, kAlice), nullptr);
  EXPECT_EQ(world.others[0].grants.size(), 1u);
  EXPECT_EQ(read(here).error(), Status::kDelay);
  EXPECT_TRUE(read(there));
  EXPECT_EQ(world.write(there, 0, pattern(there, 10)), Status::kOk);
  EXPECT_TRUE(world.get(kAlice, there, IoMode::kReadWrite, 0, 4096));
  EXPECT_EQ(world.get(kAlice, here, IoMode::kReadWrite, 0, 4096).error(), Status::kLayoutTryLater);
}

TEST_F(TwoBricks, LargeFlushesAreAskedForInPiecesThatADiskHasDoneSoon) {
  constexpr uint64_t kPiece = 64 << 20;
  BrickDevice& brick = *world.mds->bricks().find(kFirstBrick);
  std::optional<BrickDevice::Answer<brick::PersistResult>> answer;
  brick.persist({{0, 1}, {4096, 3 * kPiece}, {4 * kPiece, 7}}, [&](auto got) { answer = std::move(got); });
  world.settle();
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ(world.brick.count("persist"), 4u);
  EXPECT_EQ(world.brick.largest_bytes, kPiece);
  answer.reset();
  brick.persist({}, [&](auto got) { answer = std::move(got); });
  world.settle();
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ(world.brick.count("persist"), 5u);
}

// Whatever the MDS asks of it first, and however much at once.
TEST_F(TwoBricks, OneThatTookTheMdsForDeadIsBegunAnewAndItsClientsAreTold) {
  const InodeId here = file_on(1);
  const InodeId beside = file_on(1);
  const InodeId there = file_on(2);
  const std::vector<std::pair<std::string, std::function<void()>>> first_calls{
      {"open_session", [&] { EXPECT_FALSE(world.get(kBob, here, IoMode::kReadWrite, 0, 4096)); }},
      {"expose", [&] { EXPECT_FALSE(world.get(kAlice, beside, IoMode::kReadWrite, 0, 4096)); }},
      {"withdraw", [&] { world.give_back(kAlice, here); }},
      {"persist",
       [&] {
         EXPECT_EQ(world.write(here, 0, pattern(here, 10), nfs4::StableHow::kFileSync), Status::kDelay);
       }},
      {"close_session", [&] { world.mds->bricks().close_session(kAlice, [] {}); }},
  };
  for (const auto& [name, call] : first_calls) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(world.get(kAlice, here, IoMode::kReadWrite, 0, 4096));
    ASSERT_TRUE(world.get(kAlice, there, IoMode::kReadWrite, 0, 4096));
    world.recaller.revoked.clear();
    world.brick.lapse();
    const size_t claims = world.brick.count("claim");
    const size_t asked = world.brick.count(name);
    call();
    EXPECT_GT(world.brick.count(name), asked) << "the test has not done what it says";
    world.pass(Milliseconds(1000));
    EXPECT_EQ(world.brick.count("claim"), claims + 1);
    EXPECT_EQ(world.recaller.revoked.contains(kAlice), name != "withdraw");
    EXPECT_NE(world.mds->table().find(there, kAlice), nullptr);
    world.check("begun anew");
    EXPECT_EQ(world.read(here, 0, 10), pattern(here, 10));
    EXPECT_EQ(world.write(here, 0, pattern(here, 10)), Status::kOk);
  }
  EXPECT_TRUE(world.fenced.empty());
}

TEST_F(TwoBricks, FilesOfOneThatIsAwayWaitThenFailThenComeBack) {
  const InodeId file = file_on(1);
  lose(1);
  EXPECT_EQ(read(file).error(), Status::kDelay);
  EXPECT_EQ(world.write(file, 0, "x"), Status::kDelay);
  EXPECT_EQ(world.set_size(file, 1), Status::kDelay);
  world.clock.advance(Milliseconds(30'000));
  EXPECT_EQ(read(file).error(), Status::kIo);
  EXPECT_EQ(world.write(file, 0, "x"), Status::kIo);
  EXPECT_EQ(world.write(file, 1 << 20, "x"), Status::kIo);
  EXPECT_EQ(world.set_size(file, 1), Status::kIo);
  find_again(1);
  ASSERT_TRUE(read(file));
  EXPECT_EQ(as_text(*read(file)->data), pattern(file, 10));
  world.check("back");
}

TEST_F(TwoBricks, NewFilesGoOnWhileOneIsAway) {
  lose(1);
  for (int i = 0; i < 8; ++i) {
    const InodeId file = world.create("new" + std::to_string(i));
    ASSERT_EQ(world.write(file, 0, pattern(file, 5000)), Status::kOk);
    EXPECT_EQ(brick_of(file), 2u);
  }
  find_again(1);
  world.check("back");
}

TEST_F(TwoBricks, AFileRemovedWhileItsBrickIsAwayIsFreedWhenItComesBack) {
  const InodeId file = file_on(1);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  lose(1);
  for (int i = 0; i < 100; ++i) {
    const std::string name = "f" + std::to_string(i);
    const auto found = world.names->lookup(kRootInode, name);
    if (!found || (*found)->id != file) continue;
    ASSERT_TRUE(world.names->remove(kRootInode, name));
    break;
  }
  world.mds->conflicts().on_orphaned(file);
  world.settle();
  const size_t before = world.brick.blocks.size();
  find_again(1);
  world.settle();
  EXPECT_LT(world.brick.blocks.size(), before);
  EXPECT_FALSE(world.names->get(file));
}

TEST_F(TwoBricks, AReturnUnderWayWhenTheBrickGoesIsAnswered) {
  const InodeId file = file_on(1);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  world.brick.hold_withdrawals = true;
  bool returned = false;
  world.mds->layouts().give_back(kAlice, file, {0, kEndOfFile}, IoMode::kAny, [&] { returned = true; });
  world.settle();
  EXPECT_FALSE(returned);
  lose(1);
  EXPECT_TRUE(returned);
  EXPECT_TRUE(world.mds->table().in_use(file));  // until the brick says otherwise
  world.brick.release();
  world.brick.restart();
  find_again(1);
  world.pass(Milliseconds(500));
  EXPECT_FALSE(world.mds->table().in_use(file));
  world.check("back");
}

TEST_F(TwoBricks, AClientCanEndWhileOneIsAway) {
  const InodeId here = file_on(1);
  const InodeId there = file_on(2);
  ASSERT_TRUE(world.get(kAlice, here, IoMode::kReadWrite, 0, 4096));
  ASSERT_TRUE(world.get(kAlice, there, IoMode::kReadWrite, 0, 4096));
  lose(1);
  bool gone = false;
  world.mds->conflicts().on_client_gone(kAlice, [&] { gone = true; });
  world.settle();
  EXPECT_TRUE(gone);
  EXPECT_FALSE(world.others[0].sessions.contains(kAlice));
  find_again(1);
  world.pass(Milliseconds(300));
  EXPECT_FALSE(world.brick.sessions.contains(kAlice));
  world.check("back");
}

TEST_F(TwoBricks, AccessChangesGoOnWhileOneIsAway) {
  const InodeId file = file_on(1);
  ASSERT_TRUE(world.get(kAlice, file, IoMode::kReadWrite, 0, 4096));
  lose(1);
  std::optional<Status> changed;
  world.mds->conflicts().before_access_change(file, kBob, [&](Status status) { changed = status; });
  world.settle();
  EXPECT_EQ(changed, Status::kOk);
}

TEST_F(TwoBricks, ARestartFindsBothAgain) {
  const InodeId here = file_on(1);
  const InodeId there = file_on(2);
  world.crash(0);
  world.start();
  EXPECT_TRUE(read(here));
  EXPECT_TRUE(read(there));
  world.check("restarted");
}

TEST_F(TwoBricks, ADirtyTailOnOneThatIsAwayIsZeroedWhenItComesBack) {
  const InodeId file = file_on(1);
  const auto granted = world.get(kAlice, file, IoMode::kReadWrite, 1 << 20, 4096, 4096);
  ASSERT_TRUE(granted);
  const uint64_t grant = world.segments(granted).back().write.grant;
  ASSERT_TRUE(world.brick.client_write(kAlice, grant, 0, std::byte{'z'}, 4096));
  world.unknown = {kAlice};
  world.crash();
  world.build();
  world.plug.up(world.addresses()[1]);
  world.settle();
  EXPECT_EQ(world.brick.count("zero"), 0u);
  find_again(1);
  world.pass(Milliseconds(300));
  world.check("zeroed");
}

// --- which brick it is ---

TEST_F(TwoBricks, AnotherBrickAtAKnownAddressIsLeftAlone) {
  const InodeId file = file_on(1);
  lose(1);
  const auto own = world.brick.uuid;
  world.brick.uuid[5] = std::byte{99};
  const size_t claims = world.brick.count("claim");
  find_again(1);
  EXPECT_EQ(world.brick.count("claim"), claims);
  BrickDevice* const brick = world.mds->bricks().find(kFirstBrick);
  EXPECT_EQ(brick->state(), BrickDevice::State::kForeign);
  EXPECT_NE(brick->detail().find(uuid_text(own)), std::string::npos) << brick->detail();
  EXPECT_EQ(read(file).error(), Status::kDelay);
  lose(1);
  world.brick.uuid = own;
  find_again(1);
  EXPECT_TRUE(read(file));
}

TEST_F(TwoBricks, ABrickThatLosesBytesDoubtsItsOwnFilesOnly) {
  const InodeId first = file_on(1);
  const InodeId second = file_on(2);
  const nfs4::Verifier of_first = world.write_unstable(first, 0, "x");
  const nfs4::Verifier of_second = world.write_unstable(second, 0, "x");
  lose(2);
  world.brick_of(2).verifier = {std::byte{9}};
  find_again(2);
  EXPECT_EQ(world.commit(first), of_first);
  const auto now = world.commit(second);
  ASSERT_TRUE(now);
  EXPECT_NE(*now, of_second);
}

TEST(SeveralBricks, OneThatJoinsDoubtsNothing) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const nfs4::Verifier before = world.write_unstable(file, 0, "x");
  world.lend_brick(64);
  world.others[0].verifier = {std::byte{5}};
  const auto added = world.list->add(world.addresses()[1], false);
  ASSERT_TRUE(added);
  world.mds->bricks().connect(*added);
  world.plug.up(world.addresses()[1]);
  world.settle();
  ASSERT_TRUE(world.mds->bricks().find(*added)->ready());
  EXPECT_EQ(world.commit(file), before);
}

TEST(SeveralBricks, OneThatBelongsToAnotherServerIsNotClaimed) {
  LayoutWorld world(64, {64});
  FakeBrick& other = world.others[0];
  world.stop();
  other.owner = "somebody else";
  other.epoch = 1000;
  const size_t claims = other.count("claim");
  world.start();
  EXPECT_EQ(other.count("claim"), claims);
  EXPECT_EQ(world.mds->bricks().find(2)->state(), BrickDevice::State::kForeign);
  EXPECT_EQ(world.fenced, "");
  EXPECT_TRUE(world.mds->bricks().find(1)->ready());
}

TEST(SeveralBricks, OneThatItsServerGivesUpIsClaimedThen) {
  LayoutWorld world(64, {64});
  world.stop();
  world.others[0].owner = "somebody else";
  world.start();
  ASSERT_FALSE(world.mds->ready());
  world.others[0].owner = "";
  world.others[0].epoch = 77;
  world.pass(Milliseconds(1200));
  EXPECT_TRUE(world.mds->ready());
  EXPECT_GT(world.others[0].epoch, 77u);
}

TEST(SeveralBricks, AReleasedOneIsClaimedAboveTheEpochsOfItsFormerServer) {
  LayoutWorld world;
  world.lend_brick(64);
  world.others[0].epoch = 1000;
  world.stop();
  world.build();
  const auto added = world.list->add(world.addresses()[1], false);
  ASSERT_TRUE(added);
  world.mds->bricks().connect(*added);
  for (const std::string& address : world.addresses()) world.plug.up(address);
  world.settle();
  EXPECT_TRUE(world.mds->ready());
  EXPECT_GT(world.others[0].epoch, 1000u);
}

// Each brick has a limit of its own.
TEST_F(TwoBricks, GrantsOfOneDoNotCountAtTheOther) {
  const InodeId first = file_on(1);
  const InodeId second = file_on(2);
  const InodeId third = file_on(2);
  world.brick.grants_max = world.others.front().grants_max = 3;
  world.crash();
  world.start();
  ASSERT_TRUE(world.get(kAlice, first, IoMode::kReadWrite, 0, 4096));
  EXPECT_TRUE(world.get(kAlice, second, IoMode::kReadWrite, 0, 4096));
  EXPECT_TRUE(world.get(kAlice, third, IoMode::kReadWrite, 0, 4096));
  EXPECT_EQ(world.mds->bricks().find(1)->grants_of(kAlice), 1u);
  EXPECT_EQ(world.mds->bricks().find(2)->grants_of(kAlice), 2u);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
