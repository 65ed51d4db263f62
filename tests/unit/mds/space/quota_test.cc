// SPDX-License-Identifier: Apache-2.0
// Memory for files whose user, group or tree may have so much only.
#include <gtest/gtest.h>

#include <set>

#include "server/mds/space/file_space.h"
#include "tests/doubles/manual_clock.h"
#include "tests/doubles/metadata/memory_store.h"
#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

struct UnderQuota : ::testing::Test {
  static constexpr uint64_t kMiB = uint64_t{1} << 20;
  static constexpr uint32_t kUser = 7;
  LayoutWorld world;

  void SetUp() override {
    ASSERT_TRUE(quotas().begin());
    while (!quotas().counted()) {
      const auto slice = quotas().next_slice(100);
      ASSERT_TRUE(slice && quotas().count(*slice, {}));
    }
  }
  void TearDown() override { world.check("the end"); }

  Quotas& quotas() { return world.names->quotas(); }
  void limit(uint64_t bytes) {
    const QuotaLimits limits{.space = {.soft = 0, .hard = bytes}, .inodes = {}};
    ASSERT_TRUE(quotas().set_limits({QuotaKind::kUser, kUser}, limits, {}));
  }
  uint64_t used() { return quotas().usage({QuotaKind::kUser, kUser})->space.used; }
  InodeId create(const std::string& name, uint32_t user = kUser) {
    const InodeId file = world.create(name);
    EXPECT_TRUE(world.names->update(file, {.uid = user}));
    return file;
  }
  // Whose bytes may be those of the other one.
  InodeId create_like(InodeId other, const std::string& name) {
    for (int i = 0;; ++i) {
      const InodeId file = create(name + std::to_string(i));
      if (text(file, 1) == text(other, 1)) return file;
    }
  }
  // Of many extents, with holes between them.
  InodeId create_in_pieces(const std::string& name, uint32_t user) {
    const InodeId file = create(name, user);
    for (uint64_t i = 0; i < 9; ++i)
      EXPECT_EQ(world.write(file, i * (64 << 10), text(file, kGrainSize)), Status::kOk) << i;
    EXPECT_GE(world.extents(file).size(), 9U);
    return file;
  }
  uint64_t cost_of_clone(InodeId source) {
    const InodeId probe = create("probe", 8);
    EXPECT_EQ(world.clone({.client = kBob, .source = source, .target = probe}), Status::kOk);
    const uint64_t cost = world.stat(probe)->space_used;
    EXPECT_EQ(world.set_size(probe, 0), Status::kOk);
    return cost;
  }
  // What is asked before it gets other owners.
  std::optional<Status> chown(InodeId file, const InodeUpdate& owners) {
    std::optional<Status> answer;
    world.mds->layouts().before_owner_change(file, owners, [&](Status status) { answer = status; });
    world.pass(Milliseconds(300));
    return answer;
  }
  std::string text(InodeId inode, size_t length) {
    return std::string(length, static_cast<char>('A' + inode % 26));
  }
};

TEST_F(UnderQuota, AFileIsWrittenUpToTheLastGrainAndNoFurther) {
  limit(5 * kMiB);
  const InodeId file = create("file");
  for (uint64_t at = 0; at < 5 * kMiB; at += kMiB / 4)
    ASSERT_EQ(world.write(file, at, text(file, kMiB / 4)), Status::kOk) << at;
  EXPECT_EQ(used(), 5 * kMiB);
  EXPECT_EQ(world.write(file, 5 * kMiB, text(file, 1)), Status::kDQuot);
  EXPECT_EQ(world.write(file, 0, text(file, kMiB)), Status::kOk) << "it has that already";
  const InodeId other = create("other", 8);
  EXPECT_EQ(world.write(other, 0, text(other, 1)), Status::kOk);
  EXPECT_EQ(used(), 5 * kMiB);
}

TEST_F(UnderQuota, WhatIsRefusedTakesNoMemory) {
  limit(kMiB);
  const InodeId file = create("file");
  const uint64_t free = world.mds->data().space().free;
  EXPECT_EQ(world.write(file, 0, text(file, 2 * kMiB)), Status::kDQuot);
  EXPECT_EQ(world.mds->data().space().free, free);
  EXPECT_FALSE(world.get(kAlice, file, IoMode::kReadWrite, 0, 2 * kMiB, 2 * kMiB));
  EXPECT_EQ(used(), 0U);
}

TEST_F(UnderQuota, WhatIsAheadOfOneFileIsGivenUpForAnother) {
  const InodeId growing = create("growing");
  world.recaller.opens.insert({growing, kAlice});
  ASSERT_TRUE(world.get(kAlice, growing, IoMode::kReadWrite, 0, 2 * kMiB, 2 * kMiB));
  ASSERT_EQ(used(), 2 * kMiB);
  world.obey_recalls();
  limit(2 * kMiB);
  const InodeId other = create("other");
  ASSERT_EQ(world.write(other, 0, text(other, kMiB)), Status::kOk);
  EXPECT_FALSE(world.recaller.recalls.empty());
  EXPECT_EQ(used(), kMiB);
}

TEST_F(UnderQuota, OthersKeepWhatIsAheadOfTheirFiles) {
  const InodeId growing = create("growing", 8);
  ASSERT_TRUE(world.names->update(growing, {.gid = 8}));
  world.recaller.opens.insert({growing, kAlice});
  ASSERT_TRUE(world.get(kAlice, growing, IoMode::kReadWrite, 0, 2 * kMiB, 2 * kMiB));
  world.obey_recalls();
  limit(kGrainSize);
  const InodeId file = create("file");
  EXPECT_EQ(world.write(file, 0, text(file, kMiB)), Status::kDQuot) << "at once";
  EXPECT_TRUE(world.recaller.recalls.empty());
}

TEST_F(UnderQuota, WhoIsSlowToGiveUpWhatIsAheadIsWaitedForWithDelay) {
  const InodeId growing = create("growing");
  world.recaller.opens.insert({growing, kAlice});
  ASSERT_TRUE(world.get(kAlice, growing, IoMode::kReadWrite, 0, 2 * kMiB, 2 * kMiB));
  limit(2 * kMiB);
  const InodeId other = create("other");
  std::optional<Status> first;
  std::optional<Status> second;
  const auto write = [&](std::optional<Status>& answer) {
    world.mds->io().write({.client = kBob, .inode = other, .data = std::make_shared<const Bytes>(100)},
                          [&](const auto& got) { answer = got ? Status::kOk : got.error(); });
  };
  write(first);
  world.settle();
  write(second);  // nobody is left to ask
  world.settle();
  EXPECT_FALSE(first || second);
  world.pass(Milliseconds(700));
  EXPECT_EQ(first, Status::kDelay);
  EXPECT_EQ(second, Status::kDelay);
  world.pass(LayoutWorld::kLease);
  world.pass(Milliseconds(500));
  EXPECT_EQ(world.write(other, 0, text(other, 100)), Status::kOk);
}

TEST_F(UnderQuota, ForACloneToo) {
  const InodeId growing = create("growing");
  const InodeId source = create("source", 8);
  ASSERT_EQ(world.write(source, 0, text(source, kMiB)), Status::kOk);
  const InodeId target = create_like(source, "target");
  world.recaller.opens.insert({growing, kAlice});
  ASSERT_TRUE(world.get(kAlice, growing, IoMode::kReadWrite, 0, 2 * kMiB, 2 * kMiB));
  limit(2 * kMiB);
  world.obey_recalls();
  ASSERT_EQ(world.clone({.client = kBob, .source = source, .target = target}), Status::kOk);
  EXPECT_EQ(used(), kMiB);
  limit(kMiB);
  const InodeId second = create_like(source, "second");
  EXPECT_EQ(world.clone({.client = kBob, .source = source, .target = second}), Status::kDQuot);
}

// In batches: what is behind the end of the target by then is the clone's own, and not to be given up for the rest.
TEST_F(UnderQuota, ACloneOfManyPiecesIsWholeOrRefused) {
  const InodeId source = create_in_pieces("source", 8);
  const std::string bytes = world.read(source, 0, world.stat(source)->size);
  const uint64_t cost = cost_of_clone(source);
  const InodeId target = create_like(source, "target");
  for (uint64_t bytes_left = kGrainSize; bytes_left < cost; bytes_left += kGrainSize) {
    SCOPED_TRACE(bytes_left);
    limit(bytes_left);
    EXPECT_EQ(world.clone({.client = kBob, .source = source, .target = target, .slice = 2}), Status::kDQuot);
    EXPECT_EQ(world.stat(target)->size, 0U);
    EXPECT_EQ(used(), 0U);
  }
  limit(cost);
  EXPECT_EQ(world.clone({.client = kBob, .source = source, .target = target, .slice = 2}), Status::kOk);
  EXPECT_TRUE(world.read(target, 0, bytes.size()) == bytes);
}

TEST_F(UnderQuota, WhatIsAheadOfItsTargetIsGivenUpForACloneOfManyPieces) {
  const InodeId source = create_in_pieces("source", 8);
  const uint64_t cost = cost_of_clone(source);
  const InodeId target = create_like(source, "target");
  for (uint64_t at = 0; at < 9 * kMiB; at += kMiB)
    ASSERT_EQ(world.write(target, at, text(target, kMiB)), Status::kOk) << at;
  ASSERT_GT(used(), 9 * kMiB) << "some is ahead";
  limit(9 * kMiB + cost);
  const FileClone::What what{
      .client = kBob, .source = source, .target = target, .target_offset = 32 * kMiB, .slice = 2};
  EXPECT_EQ(world.clone(what), Status::kOk);
  EXPECT_EQ(used(), 9 * kMiB + cost);
}

TEST_F(UnderQuota, ForANewOwnerTooWhoIsRefusedBeforeTheFileIsCut) {
  const InodeId growing = create("growing");
  const InodeId given = create("given", 8);
  ASSERT_EQ(world.write(given, 0, text(given, kMiB)), Status::kOk);
  world.recaller.opens.insert({growing, kAlice});
  ASSERT_TRUE(world.get(kAlice, growing, IoMode::kReadWrite, 0, 2 * kMiB, 2 * kMiB));
  limit(3 * kMiB);
  EXPECT_EQ(chown(given, {.uid = kUser}), Status::kOk);
  EXPECT_EQ(chown(given, {.gid = 77}), Status::kOk) << "who has no limit";
  EXPECT_TRUE(world.recaller.recalls.empty()) << "there was room";
  limit(2 * kMiB);
  world.obey_recalls();
  EXPECT_EQ(chown(given, {.uid = kUser}), Status::kOk);
  EXPECT_EQ(used(), 0U);
  limit(kMiB / 2);
  EXPECT_EQ(chown(given, {.uid = kUser}), Status::kDQuot);
  EXPECT_EQ(chown(given, {.uid = kUser, .size = kMiB / 2}), Status::kOk) << "it will have no more";
  ASSERT_TRUE(quotas().set_limits({QuotaKind::kUser, kUser}, {.space = {}, .inodes = {.hard = 1}}, {}));
  EXPECT_EQ(chown(given, {.uid = kUser, .size = 0}), Status::kDQuot) << "it has an inode";
}

TEST_F(UnderQuota, NothingAheadOfAFileIsTakenBackWhileItsBrickIsAway) {
  const InodeId given = create("given", 8);
  for (uint64_t at = 0; at < 9 * kMiB; at += kMiB)
    ASSERT_EQ(world.write(given, at, text(given, kMiB)), Status::kOk) << at;
  const uint64_t all = world.stat(given)->space_used;
  ASSERT_GT(all, 9 * kMiB) << "some is ahead";
  limit(9 * kMiB);
  world.plug.down(world.kBrick);
  world.settle();
  EXPECT_EQ(chown(given, {.uid = kUser}), Status::kDQuot);
  EXPECT_EQ(world.stat(given)->space_used, all);
  world.plug.up(world.kBrick);
  world.pass(Milliseconds(500));
  EXPECT_EQ(chown(given, {.uid = kUser}), Status::kOk);
  EXPECT_EQ(world.stat(given)->space_used, 9 * kMiB);
}

TEST_F(UnderQuota, WhatIsAheadOfAFileIsForItsHolesToo) {
  const InodeId file = create("file");
  const uint64_t end = 16 * kMiB;
  for (uint64_t at = kMiB; at < end; at += kMiB)
    ASSERT_EQ(world.write(file, at, text(file, kMiB)), Status::kOk) << at;
  ASSERT_GT(used(), end - kMiB) << "some is ahead";
  limit(used());
  EXPECT_EQ(world.write(file, 0, text(file, kGrainSize)), Status::kOk);
  EXPECT_EQ(used(), end - kMiB + kGrainSize);
}

TEST(AheadFilesOfOne, AreAskedForInTurnsWhetherTheyLeaveOrNot) {
  ManualClock clock;
  EventLoop loop{clock};
  MemoryStore store(loop);
  AheadFiles files(store);
  const QuotaId owner{QuotaKind::kUser, 7};
  constexpr InodeId kFiles = 3 * AheadFiles::kAskedAtOnce;
  for (InodeId file = 1; file <= kFiles; ++file) files.enter(file, false, {owner});
  std::set<InodeId> asked;
  for (int round = 0; round < 3; ++round) {
    for (const InodeId file : files.ask(kNoInode, owner)) {
      asked.insert(file);
      files.asked(file);  // it has stayed
    }
  }
  EXPECT_EQ(asked.size(), kFiles);
  EXPECT_EQ(files.ask(kNoInode, owner).front(), 1U) << "and again from the first on";
}

TEST_F(UnderQuota, AnotherGroupMemberKeepsWhatIsAheadOfHisFiles) {
  const InodeId growing = create("growing", 8);  // of the same group, which has no limit
  world.recaller.opens.insert({growing, kAlice});
  ASSERT_TRUE(world.get(kAlice, growing, IoMode::kReadWrite, 0, 2 * kMiB, 2 * kMiB));
  world.obey_recalls();
  limit(kGrainSize);
  const InodeId file = create("file");
  EXPECT_EQ(world.write(file, 0, text(file, kMiB)), Status::kDQuot);
  EXPECT_TRUE(world.recaller.recalls.empty());
}

TEST_F(UnderQuota, AllocationOfMoreThanThereMayBeBeginsNothing) {
  limit(4 * kMiB);
  const InodeId file = create("file");
  std::optional<Status> answer;
  world.mds->ranges().allocate({.client = kBob, .inode = file}, {0, 8 * kMiB},
                               [&](Status status) { answer = status; });
  world.settle();
  EXPECT_EQ(answer, Status::kDQuot);
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(world.stat(file)->size, 0U);
}

TEST_F(UnderQuota, LittleGoesAheadOfAFileWhoseOwnerMayNotHaveMuchMore) {
  limit(16 * kMiB);
  const InodeId file = create("file");
  for (uint64_t at = 0; at < 8 * kMiB; at += kMiB)
    ASSERT_EQ(world.write(file, at, text(file, kMiB)), Status::kOk) << at;
  EXPECT_LE(used(), 9 * kMiB);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
