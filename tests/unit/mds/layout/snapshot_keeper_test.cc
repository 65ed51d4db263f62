// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/snapshot_keeper.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

class SnapshotKeeperTest : public ::testing::Test {
 protected:
  SnapshotKeeperTest() { world_.obey_recalls(); }

  std::string pattern(size_t count) const { return std::string(count, static_cast<char>('A' + file_ % 26)); }
  static std::string zeros(size_t count) { return std::string(count, '\0'); }
  SnapshotNumber take(const std::string& name) {
    const auto taken = world_.take_snapshot(name);
    EXPECT_TRUE(taken && *taken) << (taken ? taken->error().to_string() : "no answer");
    return taken && *taken ? **taken : 0;
  }
  std::string then(SnapshotNumber snapshot, uint64_t offset, uint32_t count) {
    return world_.read(inode_in(snapshot, file_), offset, count);
  }
  std::string now(uint64_t offset, uint32_t count) { return world_.read(file_, offset, count); }
  void restart() {
    world_.crash(0);
    world_.start();
    world_.obey_recalls();
    world_.pass(Milliseconds(500));
  }
  // Another file whose bytes may be the first one's (LayoutWorld::check).
  InodeId same_letter() {
    for (;;) {
      const InodeId made = world_.create("file" + std::to_string(++made_));
      if (made % 26 == file_ % 26) return made;
    }
  }
  void remove_file() {
    ASSERT_TRUE(world_.names->remove(kRootInode, "file"));
    world_.mds->conflicts().on_orphaned(file_);
    world_.pass(Milliseconds(500));
  }

  LayoutWorld world_{64};
  const InodeId file_ = world_.create("file");
  int made_ = 0;
};

TEST_F(SnapshotKeeperTest, HasTheBytesOfThenWhateverIsWrittenLater) {
  ASSERT_EQ(world_.write(file_, 0, pattern(3 * kBlock)), Status::kOk);
  const SnapshotNumber first = take("first");
  EXPECT_EQ(world_.brick.copied, 0u);
  ASSERT_EQ(world_.write(file_, kBlock + 5000, zeros(10)), Status::kOk);
  EXPECT_EQ(world_.brick.copied, kBlock);
  EXPECT_TRUE(then(first, 0, 3 * kBlock) == pattern(3 * kBlock));
  EXPECT_TRUE(now(0, 3 * kBlock) == pattern(kBlock + 5000) + zeros(10) + pattern(2 * kBlock - 5010));
  EXPECT_EQ(world_.mds->snapshots().held(), kBlock);
  // It has its own there now.
  ASSERT_EQ(world_.write(file_, kBlock, zeros(10)), Status::kOk);
  EXPECT_EQ(world_.brick.copied, kBlock);
  world_.check("written");
  restart();
  EXPECT_TRUE(then(first, 0, 3 * kBlock) == pattern(3 * kBlock));
  EXPECT_TRUE(now(kBlock, 10) == zeros(10));
  EXPECT_EQ(world_.mds->snapshots().held(), kBlock);
  world_.check("restarted");
}

TEST_F(SnapshotKeeperTest, KeepsWhatIsCutPunchedAndRemoved) {
  ASSERT_EQ(world_.write(file_, 0, pattern(3 * kBlock)), Status::kOk);
  const SnapshotNumber first = take("first");
  ASSERT_EQ(world_.deallocate(file_, {100, kBlock}), Status::kOk);
  ASSERT_EQ(world_.set_size(file_, 2 * kBlock + 10), Status::kOk);
  EXPECT_TRUE(then(first, 0, 3 * kBlock) == pattern(3 * kBlock));
  world_.check("cut");
  const SnapshotNumber second = take("second");
  remove_file();
  EXPECT_EQ(world_.names->get(file_).error(), Status::kStale);
  EXPECT_TRUE(then(first, 0, 3 * kBlock) == pattern(3 * kBlock));
  EXPECT_TRUE(then(second, 0, 3 * kBlock) == pattern(100) + zeros(kBlock - 100) + pattern(kBlock + 10));
  world_.check("removed");
  restart();
  EXPECT_TRUE(then(first, 0, 3 * kBlock) == pattern(3 * kBlock));
  EXPECT_TRUE(then(second, 0, 3 * kBlock) == pattern(100) + zeros(kBlock - 100) + pattern(kBlock + 10));
  world_.check("restarted");
}

TEST_F(SnapshotKeeperTest, GivesItsMemoryBackWhenNoOtherHasIt) {
  ASSERT_EQ(world_.write(file_, 0, pattern(4 * kBlock)), Status::kOk);
  const SnapshotNumber first = take("first");
  ASSERT_EQ(world_.write(file_, 0, zeros(kBlock)), Status::kOk);
  const SnapshotNumber second = take("second");
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  const SnapshotNumber third = take("third");
  remove_file();
  EXPECT_EQ(world_.brick.blocks.size(), 6u);
  // The zeros that only the second has.
  EXPECT_TRUE(world_.remove_snapshot("second"));
  EXPECT_EQ(world_.names->get(inode_in(second, file_)).error(), Status::kStale);
  EXPECT_EQ(world_.brick.blocks.size(), 5u);
  world_.check("second removed");
  EXPECT_TRUE(then(first, 0, 4 * kBlock) == pattern(4 * kBlock));
  EXPECT_TRUE(world_.remove_snapshot("first"));
  EXPECT_EQ(world_.brick.blocks.size(), 4u);
  EXPECT_TRUE(then(third, 0, 4 * kBlock) == pattern(4 * kBlock));
  EXPECT_TRUE(world_.remove_snapshot("third"));
  EXPECT_TRUE(world_.brick.blocks.empty());
  EXPECT_EQ(world_.mds->snapshots().held(), 0u);
  EXPECT_FALSE(world_.remove_snapshot("third"));
  world_.check("all removed");
}

TEST_F(SnapshotKeeperTest, AFileWritesInPlaceAgainWhenItsSnapshotIsGone) {
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  take("first");
  ASSERT_TRUE(world_.remove_snapshot("first"));
  ASSERT_EQ(world_.write(file_, 0, zeros(10)), Status::kOk);
  EXPECT_EQ(world_.brick.copied, 0u);
  world_.check("written");
}

TEST_F(SnapshotKeeperTest, AWriterIsAskedAndItsBytesAreThere) {
  const auto layout = world_.get(kAlice, file_, IoMode::kReadWrite, 0, UINT64_MAX, 4096);
  ASSERT_TRUE(layout);
  const auto segments = world_.segments(layout);
  ASSERT_TRUE(world_.brick.client_write(kAlice, segments[0].write.grant, 0,
                                        static_cast<std::byte>('A' + file_ % 26), 4096));
  world_.recaller.on_recall = [&](const LayoutRecall& recall) {
    EXPECT_EQ(world_.get(kBob, file_, IoMode::kReadWrite, 0, 4096).error(), Status::kLayoutTryLater);
    world_.recaller.on_recall = nullptr;
    EXPECT_EQ(world_.commit(kAlice, file_, world_.stateid_of(layout), {0, 4096}, 4095), Status::kOk);
    EXPECT_TRUE(world_.give_back(kAlice, recall.inode));
    world_.obey_recalls();
  };
  const SnapshotNumber first = take("first");
  EXPECT_TRUE(then(first, 0, 8192) == pattern(4096));
  // What was ahead of the file is not the snapshot's.
  EXPECT_EQ(world_.extents(file_).size(), 1u);
  EXPECT_EQ(world_.extents(file_).front().length, 4096u);
  const auto again = world_.get(kAlice, file_, IoMode::kReadWrite, 0, UINT64_MAX, 4096);
  ASSERT_TRUE(again);
  EXPECT_EQ(world_.brick.copied, 4096u);
  const uint64_t grant = world_.segments(again)[0].write.grant;
  ASSERT_TRUE(world_.brick.client_write(kAlice, grant, 0, std::byte{0}, 100));
  EXPECT_TRUE(then(first, 0, 8192) == pattern(4096));
  EXPECT_TRUE(now(0, 4096) == zeros(100) + pattern(3996));
}

TEST_F(SnapshotKeeperTest, WithAWriterWhoKeepsHisLayoutThereIsNoneAndNothingHasChanged) {
  ASSERT_TRUE(world_.get(kAlice, file_, IoMode::kReadWrite, 0, UINT64_MAX, 4096));
  world_.recaller.on_recall = nullptr;
  const auto taken = world_.take_snapshot("first", Milliseconds(5000));
  ASSERT_TRUE(taken);
  ASSERT_FALSE(*taken);
  EXPECT_EQ(taken->error().number(), ETIMEDOUT);
  EXPECT_TRUE(world_.names->snapshots().all().empty());
  EXPECT_EQ(world_.names->snapshots().now(), 0u);
  const InodeId other = world_.create("other");
  EXPECT_EQ(world_.write(other, 0, std::string(100, static_cast<char>('A' + other % 26))), Status::kOk);
  EXPECT_TRUE(world_.get(kBob, other, IoMode::kReadWrite, 0, 4096));
}

// A client that has thousands of files, or a busy host: it has longer as long as it does what it was asked for.
TEST_F(SnapshotKeeperTest, AWriterOfManyFilesHasTheTimeToReturnThem) {
  constexpr int kFiles = 40;
  for (int number = 0; number < kFiles; ++number) {
    const InodeId inode = world_.create("many" + std::to_string(number));
    ASSERT_TRUE(world_.get(kAlice, inode, IoMode::kReadWrite, 0, 4096));
  }
  SteadyTime next = world_.loop.clock().now();
  world_.recaller.on_recall = [&](const LayoutRecall& recall) {
    next += Milliseconds(150);
    world_.loop.after(std::chrono::duration_cast<Milliseconds>(next - world_.loop.clock().now()),
                      [this, inode = recall.inode] { EXPECT_TRUE(world_.give_back(kAlice, inode)); });
  };
  const auto taken = world_.take_snapshot("first", Milliseconds(20'000));
  ASSERT_TRUE(taken);
  EXPECT_TRUE(*taken) << taken->error().to_string();
}

TEST_F(SnapshotKeeperTest, WhoReturnsALittleNowAndThenDoesNotKeepOthersFromWriting) {
  for (int number = 0; number < 40; ++number)
    ASSERT_TRUE(
        world_.get(kAlice, world_.create("many" + std::to_string(number)), IoMode::kReadWrite, 0, 4096));
  SteadyTime next = world_.loop.clock().now();
  world_.recaller.on_recall = [&](const LayoutRecall& recall) {
    next += Milliseconds(1500);
    world_.loop.after(std::chrono::duration_cast<Milliseconds>(next - world_.loop.clock().now()),
                      [this, inode = recall.inode] { EXPECT_TRUE(world_.give_back(kAlice, inode)); });
  };
  const auto taken = world_.take_snapshot("first", kStillPatience + Milliseconds(200));
  ASSERT_TRUE(taken) << "one of forty is too few";
  ASSERT_FALSE(*taken);
  EXPECT_EQ(taken->error().number(), ETIMEDOUT);
}

TEST_F(SnapshotKeeperTest, ByForceAWriterWhoKeepsHisLayoutLosesItAndNobodyElseDoes) {
  ASSERT_EQ(world_.write(file_, 0, pattern(4096)), Status::kOk);
  const auto kept = world_.get(kAlice, file_, IoMode::kReadWrite, 0, UINT64_MAX, 4096);
  ASSERT_TRUE(kept);
  const uint64_t handle = world_.segments(kept)[0].write.grant;
  const InodeId other = world_.create("other");
  ASSERT_EQ(world_.write(other, 0, std::string(4096, static_cast<char>('A' + other % 26))), Status::kOk);
  ASSERT_TRUE(world_.get(kBob, other, IoMode::kRead, 0, 4096));
  world_.recaller.on_recall = nullptr;
  std::vector<std::pair<uint64_t, InodeId>> revoked;
  const auto taken = world_.take_snapshot("first", Milliseconds(5000), [&](uint64_t client, InodeId inode) {
    EXPECT_TRUE(world_.mds->table().find(inode, client) != nullptr);
    revoked.emplace_back(client, inode);
  });
  ASSERT_TRUE(taken && *taken) << (taken ? taken->error().to_string() : "no answer");
  EXPECT_EQ(revoked, (std::vector<std::pair<uint64_t, InodeId>>{{kAlice, file_}}));
  EXPECT_TRUE(world_.recaller.revoked.contains(kAlice));
  EXPECT_FALSE(world_.recaller.revoked.contains(kBob));
  // He writes nothing any more, neither to the file nor to the snapshot.
  EXPECT_FALSE(world_.brick.client_write(kAlice, handle, 0, std::byte{0}, 100));
  EXPECT_TRUE(then(**taken, 0, 8192) == pattern(4096));
  // The file was kept for the snapshot for a moment.
  world_.pass(Milliseconds(1000));
  EXPECT_TRUE(world_.get(kBob, file_, IoMode::kReadWrite, 0, 4096));
}

TEST_F(SnapshotKeeperTest, ByForceNobodyIsRevokedWhoGivesBackInTime) {
  ASSERT_TRUE(world_.get(kAlice, file_, IoMode::kReadWrite, 0, UINT64_MAX, 4096));
  const auto taken = world_.take_snapshot("first", Milliseconds(5000), [](uint64_t, InodeId) { FAIL(); });
  EXPECT_TRUE(taken && *taken);
}

TEST_F(SnapshotKeeperTest, ByForceManyWritersLoseTheirsInTurns) {
  constexpr uint64_t kFiles = 100;
  for (uint64_t number = 0; number < kFiles; ++number) {
    const InodeId inode = world_.create("many" + std::to_string(number));
    ASSERT_TRUE(world_.get(kAlice + number % 3, inode, IoMode::kReadWrite, 0, 4096));
  }
  world_.recaller.on_recall = nullptr;
  size_t revoked = 0;
  const auto taken = world_.take_snapshot("first", Milliseconds(5000), [&](uint64_t, InodeId) { ++revoked; });
  ASSERT_TRUE(taken && *taken) << (taken ? taken->error().to_string() : "no answer");
  EXPECT_EQ(revoked, kFiles);
}

TEST_F(SnapshotKeeperTest, WhatWasWrittenAndNotCommittedIsDurableInIt) {
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  (void)world_.write_unstable(file_, 4096, pattern(100));
  (void)world_.write_unstable(file_, 16384, pattern(100));
  std::vector<brick::Range> flushed;
  world_.brick.on_persist = [&](const auto& ranges) {
    flushed.insert(flushed.end(), ranges.begin(), ranges.end());
  };
  take("first");
  // A COMMIT would come too late: what is written there next goes to other memory.
  ASSERT_EQ(flushed.size(), 2U) << "what lies between was not written";
  EXPECT_EQ(flushed[0].logical % kBlock, 4096U);
  EXPECT_EQ(flushed[1].logical % kBlock, 16384U);
  for (const brick::Range& range : flushed) EXPECT_EQ(range.length, 100U);
  take("second");
  EXPECT_EQ(flushed.size(), 2U) << "once";
}

// Whoever reads in it loses that, so many a turn.
TEST_F(SnapshotKeeperTest, ManyReadersAreRevokedInTurns) {
  constexpr uint64_t kReaders = 300;
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  const InodeId then = inode_in(take("first"), file_);
  auto& table = const_cast<LayoutTable&>(world_.mds->table());
  for (uint64_t i = 0; i < kReaders; ++i) {
    std::array<std::byte, 12> other{std::byte{kLayoutStateidTag}};
    store_big_endian(other.data() + 4, i);
    table.add(then, 5000 + i, other).add_hole({kBlock, 2 * kBlock});
  }
  bool deleted = false;
  world_.mds->snapshots().remove("first", [&](const Result<>& got) { deleted = got.has_value(); });
  for (int i = 0; i < 100 && table.in_use(then); ++i) {
    const size_t before = table.layouts();
    world_.loop.run_once(Milliseconds(0));
    EXPECT_LE(before - table.layouts(), kLayoutsPerSlice) << "in one turn";
  }
  EXPECT_TRUE(deleted);
  EXPECT_FALSE(table.in_use(then));
  world_.pass(Milliseconds(500));
  world_.check("deleted");
}

TEST_F(SnapshotKeeperTest, WithoutABrickThereIsNone) {
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  // Whatever handles to write there may be, of before: nobody knows them.
  world_.plug.down(LayoutWorld::kBrick);
  const auto taken = world_.take_snapshot("first", Milliseconds(5000));
  ASSERT_TRUE(taken && !*taken);
  EXPECT_EQ(taken->error().number(), ETIMEDOUT);
  EXPECT_TRUE(world_.names->snapshots().all().empty());
}

TEST_F(SnapshotKeeperTest, NobodyIsStoppedForOneThatThereCannotBe) {
  ASSERT_TRUE(world_.get(kAlice, file_, IoMode::kReadWrite, 0, UINT64_MAX, 4096));
  bool recalled = false;
  world_.recaller.on_recall = [&](const LayoutRecall&) { recalled = true; };
  for (size_t i = 0; i < Snapshots::kSnapshotsMax; ++i)
    ASSERT_TRUE(world_.names->snapshots().begin(std::to_string(i), {}));
  for (const auto& [name, error] :
       {std::pair("one more", EMFILE), {"7", EEXIST}, {"a\"b", EINVAL}, {"a/b", EINVAL}}) {
    const auto taken = world_.take_snapshot(name);
    ASSERT_TRUE(taken && !*taken);
    EXPECT_EQ(taken->error().number(), error) << name;
  }
  EXPECT_FALSE(recalled);
}

TEST_F(SnapshotKeeperTest, ABrickThatDoesNotFlushKeepsNobodyWaiting) {
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  const InodeId other = world_.create("other");
  (void)world_.write_unstable(file_, 0, pattern(100));
  world_.brick.hold_persists = true;
  std::optional<Result<SnapshotNumber>> taken;
  world_.mds->snapshots().take("first", [&](Result<SnapshotNumber> outcome) { taken = std::move(outcome); });
  world_.pass(Milliseconds(1000));
  EXPECT_FALSE(taken);
  world_.brick.hold_persists = false;
  EXPECT_EQ(world_.write(other, 0, std::string(100, static_cast<char>('A' + other % 26))), Status::kOk)
      << "nobody is held up by what is flushed before turns are held";
  world_.brick.release();
  world_.pass(Milliseconds(500));
  ASSERT_TRUE(taken && *taken);
  world_.check("taken");
}

TEST_F(SnapshotKeeperTest, ReadersOfASnapshotLoseTheirHandlesBeforeItsMemoryIsFreed) {
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  const SnapshotNumber first = take("first");
  const auto layout = world_.get(kAlice, inode_in(first, file_), IoMode::kRead, 0, kBlock);
  ASSERT_TRUE(layout);
  remove_file();
  world_.brick.hold_withdrawals = true;
  EXPECT_TRUE(world_.remove_snapshot("first"));
  EXPECT_EQ(world_.brick.blocks.size(), 1u);
  EXPECT_FALSE(world_.get(kBob, inode_in(first, file_), IoMode::kRead, 0, kBlock));
  world_.brick.hold_withdrawals = false;
  world_.brick.release();
  world_.pass(Milliseconds(500));
  EXPECT_TRUE(world_.brick.blocks.empty());
  EXPECT_TRUE(world_.recaller.revoked.contains(kAlice));
  world_.check("removed");
}

TEST_F(SnapshotKeeperTest, AClonesMemoryIsTheSnapshotsUntilBothAndItAreGone) {
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  for (int i = 0; i < 25; ++i) world_.create("between" + std::to_string(i));
  const InodeId copy = world_.create("copy");
  ASSERT_EQ(world_.clone({.client = kBob, .source = file_, .target = copy}), Status::kOk);
  const SnapshotNumber first = take("first");
  ASSERT_EQ(world_.write(file_, 0, zeros(kBlock)), Status::kOk);
  EXPECT_EQ(world_.mds->snapshots().held(), 0u);
  ASSERT_EQ(world_.write(copy, 0, zeros(kBlock)), Status::kOk);
  EXPECT_EQ(world_.mds->snapshots().held(), kBlock);
  EXPECT_TRUE(then(first, 0, kBlock) == pattern(kBlock));
  EXPECT_TRUE(world_.read(inode_in(first, copy), 0, kBlock) == pattern(kBlock));
  world_.check("written");
  EXPECT_TRUE(world_.remove_snapshot("first"));
  EXPECT_EQ(world_.brick.blocks.size(), 2u);
  world_.check("removed");
}

// A clone that comes behind the snapshot has memory that the snapshot has, too.
TEST_F(SnapshotKeeperTest, AFileClonedLaterLeavesTheSnapshotItsBytes) {
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  const SnapshotNumber first = take("first");
  for (int i = 0; i < 25; ++i) world_.create("between" + std::to_string(i));
  const InodeId copy = world_.create("copy");
  ASSERT_EQ(world_.clone({.client = kBob, .source = file_, .target = copy}), Status::kOk);
  remove_file();
  ASSERT_EQ(world_.write(copy, 0, zeros(kBlock)), Status::kOk);
  EXPECT_TRUE(then(first, 0, kBlock) == pattern(kBlock));
  world_.check("written");
  restart();
  EXPECT_TRUE(then(first, 0, kBlock) == pattern(kBlock));
}

// --- clones out of a snapshot ---

TEST_F(SnapshotKeeperTest, ACloneOutOfItHasTheMemoryThatIsThere) {
  ASSERT_EQ(world_.write(file_, 0, pattern(3 * kBlock)), Status::kOk);
  const SnapshotNumber first = take("first");
  ASSERT_EQ(world_.write(file_, 0, zeros(kBlock)), Status::kOk);
  ASSERT_EQ(world_.deallocate(file_, {2 * kBlock + 8192, 2 * kBlock + 24576}), Status::kOk);
  EXPECT_EQ(world_.mds->snapshots().held(), kBlock + 16384);
  const size_t blocks = world_.brick.blocks.size();
  const uint64_t copied = world_.brick.copied;
  const InodeId copy = same_letter();
  ASSERT_EQ(world_.clone({.client = kBob, .source = inode_in(first, file_), .target = copy}), Status::kOk);
  EXPECT_EQ(world_.brick.copied, copied);
  EXPECT_EQ(world_.brick.blocks.size(), blocks);
  EXPECT_EQ(world_.mds->snapshots().held(), 0u);
  EXPECT_TRUE(world_.read(copy, 0, 3 * kBlock) == pattern(3 * kBlock));
  world_.check("cloned");
  // Nobody writes into what the snapshot has, nor into what the other file has.
  ASSERT_EQ(world_.write(copy, 0, zeros(10)), Status::kOk);
  ASSERT_EQ(world_.write(file_, kBlock, zeros(20)), Status::kOk);
  EXPECT_TRUE(then(first, 0, 3 * kBlock) == pattern(3 * kBlock));
  EXPECT_TRUE(world_.read(copy, 0, 3 * kBlock) == zeros(10) + pattern(3 * kBlock - 10));
  EXPECT_EQ(world_.mds->snapshots().held(), kBlock);
  world_.check("written");
  restart();
  EXPECT_EQ(world_.mds->snapshots().held(), kBlock);
  EXPECT_TRUE(world_.remove_snapshot("first"));
  EXPECT_EQ(world_.mds->snapshots().held(), 0u);
  world_.check("snapshot removed");
  ASSERT_EQ(world_.write(copy, kBlock, zeros(30)), Status::kOk);
  EXPECT_TRUE(now(kBlock, kBlock) == zeros(20) + pattern(kBlock - 20));
  EXPECT_TRUE(world_.read(copy, kBlock, 2 * kBlock) == zeros(30) + pattern(2 * kBlock - 30));
  world_.check("written again");
}

TEST_F(SnapshotKeeperTest, AFileGetsItsBytesOfThenBack) {
  ASSERT_EQ(world_.write(file_, 0, pattern(2 * kBlock + 100)), Status::kOk);
  const SnapshotNumber first = take("first");
  ASSERT_EQ(world_.write(file_, 0, zeros(kBlock)), Status::kOk);
  ASSERT_EQ(world_.set_size(file_, kBlock + 100), Status::kOk);
  const size_t blocks = world_.brick.blocks.size();
  ASSERT_EQ(world_.clone({.client = kBob, .source = inode_in(first, file_), .target = file_}), Status::kOk);
  EXPECT_EQ(world_.stat(file_)->size, 2 * kBlock + 100);
  EXPECT_TRUE(now(0, 3 * kBlock) == pattern(2 * kBlock + 100));
  EXPECT_EQ(world_.mds->snapshots().held(), 0u);
  EXPECT_LT(world_.brick.blocks.size(), blocks);  // without the zeros
  world_.check("restored");
  // The snapshot again, once more: nothing is dead, and nothing becomes so.
  ASSERT_EQ(world_.clone({.client = kBob, .source = inode_in(first, file_), .target = file_}), Status::kOk);
  EXPECT_EQ(world_.mds->snapshots().held(), 0u);
  world_.check("restored again");
  EXPECT_TRUE(world_.remove_snapshot("first"));
  EXPECT_TRUE(now(0, 3 * kBlock) == pattern(2 * kBlock + 100));
  world_.check("snapshot removed");
  remove_file();
  EXPECT_TRUE(world_.brick.blocks.empty());
}

TEST_F(SnapshotKeeperTest, AFileThatIsGoneComesBackTwice) {
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  const SnapshotNumber first = take("first");
  const InodeId one = same_letter();
  remove_file();
  ASSERT_EQ(world_.clone({.client = kBob, .source = inode_in(first, file_), .target = one}), Status::kOk);
  EXPECT_EQ(world_.mds->snapshots().held(), 0u);
  const SnapshotNumber second = take("second");
  const InodeId other = same_letter();
  ASSERT_EQ(world_.clone({.client = kBob, .source = inode_in(second, one), .target = other}), Status::kOk);
  EXPECT_EQ(world_.brick.blocks.size(), 1u);
  world_.check("cloned");
  ASSERT_EQ(world_.write(one, 0, zeros(kBlock)), Status::kOk);
  EXPECT_EQ(world_.mds->snapshots().held(), 0u);
  ASSERT_EQ(world_.set_size(other, 0), Status::kOk);
  EXPECT_EQ(world_.mds->snapshots().held(), kBlock);
  EXPECT_TRUE(world_.remove_snapshot("second"));
  EXPECT_TRUE(then(first, 0, kBlock) == pattern(kBlock));
  world_.check("second removed");
  EXPECT_TRUE(world_.remove_snapshot("first"));
  EXPECT_EQ(world_.brick.blocks.size(), 1u);
  world_.check("all removed");
}

TEST_F(SnapshotKeeperTest, NothingComesOutOfOneThatGoes) {
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  const SnapshotNumber first = take("first");
  const InodeId copy = same_letter();
  remove_file();
  ASSERT_TRUE(world_.get(kAlice, inode_in(first, file_), IoMode::kRead, 0, kBlock));
  world_.brick.hold_withdrawals = true;
  EXPECT_TRUE(world_.remove_snapshot("first"));
  EXPECT_EQ(world_.clone({.client = kBob, .source = inode_in(first, file_), .target = copy}), Status::kStale);
  world_.brick.hold_withdrawals = false;
  world_.brick.release();
  world_.pass(Milliseconds(500));
  EXPECT_TRUE(world_.brick.blocks.empty());
  world_.check("removed");
}

// Writes, holes, cuts, clones within today and out of the past, snapshots that come and go in any order, restarts.
TEST_F(SnapshotKeeperTest, AnyLifeWithClonesOutOfSnapshotsIsThatOfItsModel) {
  constexpr size_t kGrains = 24;
  constexpr size_t kFiles = 3;
  using Content = std::string;  // a letter for each grain: x or 0
  std::vector<InodeId> files{file_};
  while (files.size() < kFiles) files.push_back(same_letter());
  std::vector<Content> model(kFiles, Content(kGrains, '0'));
  struct Past {
    SnapshotNumber number;
    std::vector<Content> content;
  };
  std::map<std::string, Past> past;
  std::mt19937 random(7);  // NOLINT: a test that repeats
  const auto below = [&](size_t end) { return random() % end; };
  const auto bytes = [&](const Content& content) {
    std::string all;
    for (const char grain : content) all += grain == 'x' ? pattern(kGrainSize) : zeros(kGrainSize);
    return all;
  };
  for (const InodeId file : files) ASSERT_EQ(world_.set_size(file, kGrains * kGrainSize), Status::kOk);
  const auto compare = [&] {
    for (size_t i = 0; i < kFiles; ++i) {
      EXPECT_TRUE(world_.read(files[i], 0, kGrains * kGrainSize) == bytes(model[i])) << "file " << i;
      for (const auto& [name, then] : past)
        EXPECT_TRUE(world_.read(inode_in(then.number, files[i]), 0, kGrains * kGrainSize) ==
                    bytes(then.content[i]))
            << "file " << i << " of " << name;
    }
  };
  for (int step = 0; step < 400 && !HasFailure(); ++step) {
    SCOPED_TRACE(step);
    const size_t target = below(kFiles);
    const size_t source = below(kFiles);
    const size_t begin = below(kGrains);
    const size_t count = 1 + below(kGrains - begin);
    const size_t from = below(kGrains - count + 1);
    const size_t what = below(12);
    if (what < 3) {
      const char letter = below(2) == 0 ? 'x' : '0';
      const std::string text = letter == 'x' ? pattern(count * kGrainSize) : zeros(count * kGrainSize);
      ASSERT_EQ(world_.write(files[target], begin * kGrainSize, text), Status::kOk);
      model[target].replace(begin, count, Content(count, letter));
    } else if (what == 3) {
      ASSERT_EQ(world_.deallocate(files[target], {begin * kGrainSize, (begin + count) * kGrainSize}),
                Status::kOk);
      model[target].replace(begin, count, Content(count, '0'));
    } else if (what == 4) {
      ASSERT_EQ(world_.set_size(files[target], begin * kGrainSize), Status::kOk);
      ASSERT_EQ(world_.set_size(files[target], kGrains * kGrainSize), Status::kOk);
      model[target].replace(begin, kGrains - begin, Content(kGrains - begin, '0'));
    } else if (what < 9) {
      auto then = past.begin();
      if (!past.empty()) std::advance(then, below(past.size() + 1));
      const bool live = then == past.end();
      const bool overlap = from < begin + count && begin < from + count;
      if (live && source == target && overlap) continue;
      const Content old = (live ? model : then->second.content)[source].substr(from, count);
      FileClone::What clone{.client = kBob, .source = files[source], .source_offset = from * kGrainSize};
      if (!live) clone.source = inode_in(then->second.number, files[source]);
      clone.target = files[target];
      clone.target_offset = begin * kGrainSize;
      clone.count = count * kGrainSize;
      ASSERT_EQ(world_.clone(clone), Status::kOk);
      model[target].replace(begin, count, old);
    } else if (what == 9) {
      const std::string name = "at" + std::to_string(step);
      if (past.size() < 5) past[name] = {take(name), model};
    } else if (what == 10 && !past.empty()) {
      auto gone = past.begin();
      std::advance(gone, below(past.size()));
      ASSERT_TRUE(world_.remove_snapshot(gone->first));
      past.erase(gone);
    } else if (below(4) == 0) {
      restart();
    }
    world_.check("after a step");
    if (step % 8 == 0) compare();
  }
  compare();
  while (!past.empty()) {
    ASSERT_TRUE(world_.remove_snapshot(past.begin()->first));
    past.erase(past.begin());
    world_.check("a snapshot removed");
  }
  compare();
  EXPECT_EQ(world_.mds->snapshots().held(), 0u);
}

// The process dies at each commit of a restore and of the snapshot's end behind it.
TEST_F(SnapshotKeeperTest, ACrashAtAnyCommitOfARestoreLosesNothing) {
  for (int at = 1; at < 200; ++at) {
    SCOPED_TRACE(at);
    LayoutWorld world{64};
    world.obey_recalls();
    const InodeId file = world.create("file");
    const std::string text(2 * kBlock, static_cast<char>('A' + file % 26));
    ASSERT_EQ(world.write(file, 0, text), Status::kOk);
    const auto first = world.take_snapshot("first");
    ASSERT_TRUE(first && *first);
    ASSERT_EQ(world.write(file, 0, zeros(kBlock)), Status::kOk);
    const std::string changed = zeros(kBlock) + text.substr(kBlock);
    int left = at;
    bool dead = false;
    world.store.before_commit = [&] { return !(dead = dead || --left <= 0); };
    const bool restored =
        world.clone({.client = kBob, .source = inode_in(**first, file), .target = file}) == Status::kOk;
    const bool second = [&] {
      const auto taken = world.take_snapshot("second", Milliseconds(200));
      return taken && *taken;
    }();
    const bool removed = world.remove_snapshot("first");
    const bool ended = !dead;
    world.restart_after_death();
    const std::string there = world.read(file, 0, 2 * kBlock);
    EXPECT_TRUE(there == text || there == changed);
    EXPECT_TRUE(!second || !restored || there == text);
    for (const auto& [number, snapshot] : world.names->snapshots().all()) {
      const std::string then = world.read(inode_in(number, file), 0, 2 * kBlock);
      EXPECT_TRUE(then == (snapshot.name == "first" ? text : there));
    }
    EXPECT_FALSE(removed && !dead && world.names->snapshots().find("first") != nullptr);
    for (const char* name : {"second", "first"}) world.remove_snapshot(name);
    world.check("all removed");
    EXPECT_EQ(world.brick.blocks.size(), 2u);
    if (ended) return;
  }
  ADD_FAILURE() << "it never ended";
}

// The process dies at each commit of a life with snapshots, and the host loses what was not synced.
TEST_F(SnapshotKeeperTest, ACrashAtAnyCommitLosesNeitherFilesNorSnapshots) {
  for (int at = 1; at < 200; ++at) {
    SCOPED_TRACE(at);
    LayoutWorld world{64};
    world.obey_recalls();
    const InodeId file = world.create("file");
    const char letter = static_cast<char>('A' + file % 26);
    const std::string text(2 * kBlock, letter);
    ASSERT_EQ(world.write(file, 0, text), Status::kOk);
    int left = at;
    bool dead = false;
    world.store.before_commit = [&] { return !(dead = dead || --left <= 0); };
    const auto first = world.take_snapshot("first", Milliseconds(200));
    const bool has_first = first && *first;
    const bool written = world.write(file, 0, zeros(kBlock)) == Status::kOk;
    const auto second = world.take_snapshot("second", Milliseconds(200));
    const bool has_second = second && *second;
    const bool removed = world.remove_snapshot("first");
    const bool ended = !dead;
    world.restart_after_death();
    const std::string there = world.read(file, 0, 2 * kBlock);
    EXPECT_TRUE(there == text || there == zeros(kBlock) + text.substr(kBlock));
    EXPECT_TRUE(!written || there == zeros(kBlock) + text.substr(kBlock));
    std::map<std::string, std::string> found;
    for (const auto& [number, snapshot] : world.names->snapshots().all()) {
      EXPECT_TRUE(snapshot.is_ready());
      found[snapshot.name] = world.read(inode_in(number, file), 0, 2 * kBlock);
    }
    EXPECT_TRUE(!found.contains("first") || found["first"] == text);
    EXPECT_TRUE(!has_first || removed || dead || found.contains("first"));
    EXPECT_FALSE(removed && found.contains("first"));
    EXPECT_TRUE(!has_second || found.contains("second"));
    EXPECT_TRUE(!has_second || !written || found["second"] == there);
    for (const auto& [name, bytes] : found) world.remove_snapshot(name);
    world.check("all removed");
    EXPECT_EQ(world.brick.blocks.size(), 2u);
    if (ended) return;
  }
  ADD_FAILURE() << "it never ended";
}

// Whatever it has to commit for that: the store refuses commits while it is copied.
TEST_F(SnapshotKeeperTest, ABrickThatComesWhileTheMetadataIsCopiedIsReadyThen) {
  ASSERT_EQ(world_.write(file_, 0, pattern(kBlock)), Status::kOk);
  for (size_t refused = 1; refused <= 8; ++refused) {
    world_.plug.down(world_.kBrick);
    world_.brick.restart();
    world_.pass(Milliseconds(500));
    world_.store.stall(refused);
    world_.plug.up(world_.kBrick);
    world_.pass(Milliseconds(2000));
    EXPECT_TRUE(world_.mds->ready()) << refused;
    world_.store.stall(0);
  }
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
