// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/snapshot_keeper.h"

#include <gtest/gtest.h>

#include <map>

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
  void remove_file() {
    ASSERT_TRUE(world_.names->remove(kRootInode, "file"));
    world_.mds->conflicts().on_orphaned(file_);
    world_.pass(Milliseconds(500));
  }

  LayoutWorld world_{64};
  const InodeId file_ = world_.create("file");
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
  ASSERT_EQ(flushed.size(), 1U);
  EXPECT_EQ(flushed.front().logical % kBlock, 4096U);
  EXPECT_EQ(flushed.front().length, 16384U + 100 - 4096);
  take("second");
  EXPECT_EQ(flushed.size(), 1U) << "once";
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
    world.crash(0);
    world.store.before_commit = [] { return true; };
    world.start();
    world.obey_recalls();
    world.pass(Milliseconds(1500));
    world.check("restarted");
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
