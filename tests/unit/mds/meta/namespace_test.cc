// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/namespace.h"

#include <gtest/gtest.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>
#include <sys/stat.h>

#include <set>

#include "server/mds/meta/extents.h"
#include "server/mds/meta/namespace_check.h"
#include "tests/doubles/manual_clock.h"
#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class Names : public OverBothEngines {
 protected:
  Names() { open(1); }
  void TearDown() override {
    const auto report = check_namespace(*store_);
    ASSERT_TRUE(report);
    for (const std::string& problem : report->problems) ADD_FAILURE() << problem;
  }

  void open(uint64_t boot) {
    boot_ = boot;
    auto opened = Namespace::open(*store_, clock_, boot, {.cached_inodes = 16, .cached_names = 16});
    ASSERT_TRUE(opened) << opened.error().to_string();
    names_ = *std::move(opened);
    names_->set_in_use([this](InodeId id) { return used_.contains(id); });
  }
  void restart() {
    names_.reset();
    store_.reopen();
    open(boot_ + 1);
  }

  InodePointer make(InodeId directory, std::string_view name, FileType type = FileType::kRegular) {
    return names_->create(directory, name, {.type = type, .mode = 0644}).value().inode;
  }
  InodeId directory(std::string_view name, InodeId parent = kRootInode) {
    return make(parent, name, FileType::kDirectory)->id;
  }
  std::vector<std::string> list(InodeId directory) {
    std::vector<std::string> found;
    const DirectoryPage page = names_->read_directory(directory, 0, 1000).value();
    for (const DirectoryEntry& entry : page.entries) found.push_back(entry.name);
    return found;
  }
  template <typename T>
  static Status status(const Outcome<T>& outcome) {
    return outcome ? Status::kOk : outcome.error();
  }

  ManualClock clock_;
  uint64_t boot_ = 0;
  std::unique_ptr<Namespace> names_;
  std::set<InodeId> used_;
};

TEST_P(Names, AFreshStoreHasARootDirectory) {
  const InodePointer root = names_->get(kRootInode).value();
  EXPECT_TRUE(root->is_directory());
  EXPECT_EQ(root->mode, 0755u);
  EXPECT_EQ(root->nlink, 2u);
  EXPECT_EQ(status(names_->lookup_parent(kRootInode)), Status::kNoEnt);
}

TEST_P(Names, ACreatedFileIsFoundByItsNameAndSurvivesARestart) {
  const auto created = names_->create(kRootInode, "file", {.mode = 0100640, .uid = 7, .gid = 8}).value();
  EXPECT_FALSE(created.existed);
  EXPECT_GT(created.directory.after, created.directory.before);
  const Inode before = *created.inode;
  EXPECT_EQ(before.mode, 0640u);
  EXPECT_EQ(before.nlink, 1u);
  EXPECT_EQ(before.generation, 1u);
  restart();
  EXPECT_EQ(*names_->lookup(kRootInode, "file").value(), before);
}

TEST_P(Names, EveryTypeKeepsWhatMakesItUp) {
  names_->create(kRootInode, "link", {.type = FileType::kSymlink, .symlink_target = "over/there"}).value();
  names_->create(kRootInode, "disk", {.type = FileType::kBlockDevice, .device_major = 8, .device_minor = 1})
      .value();
  make(kRootInode, "pipe", FileType::kFifo);
  make(kRootInode, "socket", FileType::kSocket);
  make(kRootInode, "tty", FileType::kCharacterDevice);
  restart();
  const InodePointer link = names_->lookup(kRootInode, "link").value();
  EXPECT_EQ(link->symlink_target, "over/there");
  EXPECT_EQ(link->size, 10u);
  const InodePointer disk = names_->lookup(kRootInode, "disk").value();
  EXPECT_EQ(disk->device_major, 8u);
  EXPECT_EQ(disk->device_minor, 1u);
  EXPECT_EQ(names_->lookup(kRootInode, "pipe").value()->type, FileType::kFifo);
}

TEST_P(Names, ANameMustBeOne) {
  EXPECT_EQ(status(names_->lookup(kRootInode, "")), Status::kInval);
  EXPECT_EQ(status(names_->create(kRootInode, ".", {})), Status::kBadName);
  EXPECT_EQ(status(names_->create(kRootInode, "..", {})), Status::kBadName);
  EXPECT_EQ(status(names_->create(kRootInode, "a/b", {})), Status::kBadChar);
  EXPECT_EQ(status(names_->create(kRootInode, std::string_view("a\0b", 3), {})), Status::kBadChar);
  EXPECT_EQ(status(names_->create(kRootInode, std::string(256, 'n'), {})), Status::kNameTooLong);
  EXPECT_EQ(status(names_->create(kRootInode, std::string(255, 'n'), {})), Status::kOk);
}

TEST_P(Names, ASymlinkNeedsATarget) {
  NewInode what{.type = FileType::kSymlink};
  EXPECT_EQ(status(names_->create(kRootInode, "l", what)), Status::kInval);
  what.symlink_target = std::string(kSymlinkBytesMax + 1, 'x');
  EXPECT_EQ(status(names_->create(kRootInode, "l", what)), Status::kInval);
  what.symlink_target.pop_back();
  EXPECT_EQ(status(names_->create(kRootInode, "l", what)), Status::kOk);
}

TEST_P(Names, OnlyDirectoriesHaveNames) {
  const InodeId file = make(kRootInode, "file")->id;
  names_->create(kRootInode, "link", {.type = FileType::kSymlink, .symlink_target = "x"}).value();
  const InodeId link = names_->lookup(kRootInode, "link").value()->id;
  EXPECT_EQ(status(names_->lookup(file, "x")), Status::kNotDir);
  EXPECT_EQ(status(names_->create(file, "x", {})), Status::kNotDir);
  EXPECT_EQ(status(names_->lookup(link, "x")), Status::kSymlink);
  EXPECT_EQ(status(names_->lookup(9999, "x")), Status::kStale);
}

TEST_P(Names, CreateModesMeetAnExistingName) {
  const InodeId file = make(kRootInode, "file")->id;
  EXPECT_EQ(status(names_->create(kRootInode, "file", {})), Status::kExist);
  const auto met = names_->create(kRootInode, "file", {.how = CreateMode::kUnchecked}).value();
  EXPECT_TRUE(met.existed);
  EXPECT_EQ(met.inode->id, file);
  EXPECT_EQ(met.directory.before, met.directory.after);
}

TEST_P(Names, AnExclusiveCreateIsRepeatedByItsVerifierOnly) {
  NewInode what{.how = CreateMode::kExclusive, .verifier = {std::byte{1}}};
  const InodeId file = names_->create(kRootInode, "file", what).value().inode->id;
  restart();
  const auto again = names_->create(kRootInode, "file", what).value();
  EXPECT_TRUE(again.existed);
  EXPECT_EQ(again.inode->id, file);
  what.verifier[0] = std::byte{2};
  EXPECT_EQ(status(names_->create(kRootInode, "file", what)), Status::kExist);
  make(kRootInode, "plain");
  what.verifier = {};
  EXPECT_EQ(status(names_->create(kRootInode, "plain", what)), Status::kExist);
}

TEST_P(Names, ASetgidDirectoryHandsDownItsGroup) {
  const InodeId shared =
      names_->create(kRootInode, "shared", {.type = FileType::kDirectory, .mode = 02775, .gid = 42})
          .value()
          .inode->id;
  EXPECT_EQ(names_->create(shared, "file", {.gid = 1}).value().inode->gid, 42u);
  const InodePointer below =
      names_->create(shared, "dir", {.type = FileType::kDirectory, .gid = 1}).value().inode;
  EXPECT_EQ(below->gid, 42u);
  EXPECT_NE(below->mode & S_ISGID, 0u);
}

TEST_P(Names, DirectoriesCountLinksAndKnowTheirParent) {
  const InodeId a = directory("a");
  const InodeId b = directory("b", a);
  EXPECT_EQ(names_->get(kRootInode).value()->nlink, 3u);
  EXPECT_EQ(names_->get(a).value()->nlink, 3u);
  EXPECT_EQ(names_->get(a).value()->size, 1u);
  EXPECT_EQ(names_->lookup_parent(b).value()->id, a);
}

TEST_P(Names, OnlyAnEmptyDirectoryIsRemoved) {
  const InodeId a = directory("a");
  make(a, "file");
  EXPECT_EQ(status(names_->remove(kRootInode, "a")), Status::kNotEmpty);
  EXPECT_FALSE(names_->remove(a, "file").value().orphaned);
  EXPECT_EQ(status(names_->remove(kRootInode, "a")), Status::kOk);
  EXPECT_EQ(status(names_->get(a)), Status::kStale);
  EXPECT_EQ(status(names_->remove(kRootInode, "a")), Status::kNoEnt);
  EXPECT_EQ(names_->get(kRootInode).value()->nlink, 2u);
}

TEST_P(Names, AnUnusedEmptyFileGoesWithItsLastName) {
  const InodeId file = make(kRootInode, "file")->id;
  names_->link(file, kRootInode, "other").value();
  EXPECT_EQ(names_->remove(kRootInode, "file").value().inode->nlink, 1u);
  EXPECT_EQ(status(names_->get(file)), Status::kOk);
  EXPECT_EQ(names_->remove(kRootInode, "other").value().inode->nlink, 0u);
  EXPECT_EQ(status(names_->get(file)), Status::kStale);
}

TEST_P(Names, AnOpenFileWithoutANameIsAnOrphanUntilItIsDestroyed) {
  const InodeId file = make(kRootInode, "file")->id;
  used_.insert(file);
  EXPECT_TRUE(names_->remove(kRootInode, "file").value().orphaned);
  restart();
  EXPECT_EQ(names_->orphans().value(), std::vector<InodeId>{file});
  EXPECT_EQ(names_->get(file).value()->nlink, 0u);
  EXPECT_EQ(status(names_->link(file, kRootInode, "back")), Status::kStale);
  EXPECT_EQ(status(names_->destroy(file)), Status::kOk);
  EXPECT_TRUE(names_->orphans().value().empty());
  EXPECT_EQ(status(names_->get(file)), Status::kStale);
}

TEST_P(Names, AFileWithSpaceStaysUntilTheSpaceIsFreed) {
  const InodeId file = make(kRootInode, "file")->id;
  ExtentChange extents(*store_, file);
  ASSERT_TRUE(extents.insert({0, 1 << 21, kGrainSize}));
  Batch batch;
  extents.write_to(batch);
  Extents::mark_tail_dirty(batch, file);
  names_->update(file, {.size = 100, .space_used = kGrainSize}, batch).value();
  EXPECT_TRUE(names_->remove(kRootInode, "file").value().orphaned);
  EXPECT_EQ(Extents(*store_).all(file).value().size(), 1u);

  ExtentChange freed(*store_, file);
  EXPECT_EQ(freed.remove(0, UINT64_MAX).value().size(), 1u);
  Batch end;
  freed.write_to(end);
  EXPECT_EQ(status(names_->destroy(file, end)), Status::kOk);
  EXPECT_FALSE(Extents(*store_).tail_dirty(file).value());
}

TEST_P(Names, OnlyOrphansAreDestroyed) {
  const InodeId file = make(kRootInode, "file")->id;
  EXPECT_EQ(status(names_->destroy(file)), Status::kInval);
  EXPECT_EQ(status(names_->destroy(4711)), Status::kStale);
}

TEST_P(Names, LinksNeedAFreeNameAndNoDirectory) {
  const InodeId a = directory("a");
  const InodeId file = make(kRootInode, "file")->id;
  EXPECT_EQ(status(names_->link(a, kRootInode, "b")), Status::kIsDir);
  EXPECT_EQ(status(names_->link(file, kRootInode, "a")), Status::kExist);
  EXPECT_EQ(status(names_->link(file, file, "x")), Status::kNotDir);
  const auto linked = names_->link(file, a, "again").value();
  EXPECT_EQ(linked.inode->nlink, 2u);
  EXPECT_EQ(names_->lookup(a, "again").value()->id, file);
}

TEST_P(Names, ReaddirGoesOnFromACookieWhateverChangedMeanwhile) {
  for (int i = 0; i < 10; ++i) make(kRootInode, "f" + std::to_string(i));
  const DirectoryPage first = names_->read_directory(kRootInode, 0, 4).value();
  ASSERT_EQ(first.entries.size(), 4u);
  EXPECT_FALSE(first.end);
  EXPECT_GE(first.entries[0].cookie, 3u);
  names_->remove(kRootInode, "f3").value();  // the one the cookie names
  names_->remove(kRootInode, "f5").value();
  make(kRootInode, "late");
  restart();
  const DirectoryPage rest = names_->read_directory(kRootInode, first.entries[3].cookie, 100).value();
  std::vector<std::string> found;
  for (const DirectoryEntry& entry : rest.entries) found.push_back(entry.name);
  EXPECT_EQ(found, (std::vector<std::string>{"f4", "f6", "f7", "f8", "f9", "late"}));
  EXPECT_TRUE(rest.end);
}

TEST_P(Names, ReaddirKnowsTheEndEvenWhenThePageIsExactlyFull) {
  make(kRootInode, "a");
  make(kRootInode, "b");
  EXPECT_TRUE(names_->read_directory(kRootInode, 0, 2).value().end);
  EXPECT_FALSE(names_->read_directory(kRootInode, 0, 1).value().end);
  EXPECT_EQ(status(names_->read_directory(kRootInode, 1, 10)), Status::kBadCookie);
  EXPECT_EQ(status(names_->read_directory(kRootInode, 2, 10)), Status::kBadCookie);
  EXPECT_TRUE(names_->read_directory(kRootInode, UINT64_MAX, 10).value().entries.empty());
}

TEST_P(Names, AnUpdateSetsWhatItNamesAndMovesChangeOn) {
  const InodePointer before = make(kRootInode, "file");
  clock_.advance(Milliseconds(5000));
  const InodePointer after =
      names_->update(before->id, {.mode = 0107777, .uid = 5, .size = 77, .mtime = WallTime{1, 2}}).value();
  EXPECT_EQ(after->mode, 07777u);
  EXPECT_EQ(after->uid, 5u);
  EXPECT_EQ(after->gid, before->gid);
  EXPECT_EQ(after->size, 77u);
  EXPECT_EQ(after->mtime, (WallTime{1, 2}));
  EXPECT_GT(after->ctime, before->ctime);
  EXPECT_GT(after->change, before->change);
  restart();
  EXPECT_EQ(*names_->get(before->id).value(), *after);
}

TEST_P(Names, AnImpossibleUpdateChangesNothing) {
  const InodePointer before = make(kRootInode, "file");
  EXPECT_EQ(status(names_->update(before->id, {.mode = 0, .mtime = WallTime{1, 1'000'000'000}})),
            Status::kInval);
  EXPECT_EQ(status(names_->update(before->id, {.mode = 0, .size = kFileSizeMax + 1})), Status::kFBig);
  EXPECT_EQ(status(names_->update(kRootInode, {.size = 0})), Status::kInval);
  EXPECT_EQ(*names_->get(before->id).value(), *before);
}

TEST_P(Names, AllocationAheadIsNotSeenByUsers) {
  const InodePointer before = make(kRootInode, "file");
  clock_.advance(Milliseconds(5000));
  ExtentChange extents(*store_, before->id);
  ASSERT_TRUE(extents.insert({0, 1 << 21, kGrainSize}));
  Batch batch;
  extents.write_to(batch);
  const InodePointer after =
      names_->update(before->id, {.space_used = kGrainSize, .space_only = true}, batch).value();
  EXPECT_EQ(after->change, before->change);
  EXPECT_EQ(after->ctime, before->ctime);
  EXPECT_EQ(after->space_used, kGrainSize);
}

TEST_P(Names, LazyTimesAreNoReasonForRepliesToWait) {
  const InodePointer before = make(kRootInode, "file");
  const Sequence newest = names_->last_namespace_sequence();
  clock_.advance(Milliseconds(5000));
  const InodePointer touched = names_->touch(before->id).value();
  EXPECT_GT(touched->mtime, before->mtime);
  EXPECT_GT(touched->change, before->change);
  const InodePointer read = names_->touch_atime(before->id).value();
  EXPECT_EQ(read->change, touched->change);
  EXPECT_GT(read->atime, before->atime);
  EXPECT_EQ(names_->last_namespace_sequence(), newest);
}

// RFC 9754, 5
TEST_P(Names, WhatAHolderSaysOfTimesMovesTheChangeNoFartherThanTheData) {
  const InodePointer before = make(kRootInode, "file");
  clock_.advance(Milliseconds(5000));
  const WallTime his = clock_.wall_now();
  clock_.advance(Milliseconds(5000));
  const InodePointer read = names_->update(before->id, {.atime = his, .by_holder = true}).value();
  EXPECT_EQ(read->atime, his);
  EXPECT_EQ(read->ctime, before->ctime);
  EXPECT_EQ(read->change, before->change);
  const InodePointer written = names_->update(before->id, {.mtime = his, .by_holder = true}).value();
  EXPECT_EQ(written->mtime, his);
  EXPECT_EQ(written->ctime, his);
  EXPECT_GT(written->change, before->change);
  const InodePointer earlier =
      names_->update(before->id, {.mtime = before->mtime, .by_holder = true}).value();
  EXPECT_EQ(earlier->ctime, his);
  EXPECT_GT(earlier->change, written->change);
}

TEST_P(Names, ChangeAndInodeNumbersNeverRepeatAfterACrash) {
  SeededRandom random(3);
  std::set<uint64_t> changes;
  std::set<std::pair<InodeId, uint64_t>> handles;
  const InodeId file = make(kRootInode, "file")->id;
  store_.settle();
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(changes.insert(names_->touch(file).value()->change).second);
      const InodePointer made = make(kRootInode, "n" + std::to_string(i));
      EXPECT_TRUE(handles.emplace(made->id, made->generation).second);
      names_->remove(kRootInode, "n" + std::to_string(i)).value();
    }
    names_.reset();
    store_.crash(random);
    open(boot_ + 1);
    for (const std::string& name : list(kRootInode)) {
      if (name != "file") names_->remove(kRootInode, name).value();
    }
  }
}

TEST_P(Names, WritingDataTakesPrivilegeBits) {
  const InodeId file = names_->create(kRootInode, "file", {.mode = 06775}).value().inode->id;
  EXPECT_EQ(names_->update(file, {.clear_setid = true}).value()->mode, 0775u);
}

// Listed and emptied page by page, as rm -r does it, in whatever order.
TEST_P(Names, AListingDoesNotWalkWhatWasDeletedBeforeIt) {
  constexpr size_t kNames = 2000;
  constexpr size_t kPage = 100;
  for (size_t i = 0; i < kNames; ++i)
    ASSERT_TRUE(names_->create(kRootInode, "name" + std::to_string(i), {.type = FileType::kFifo}));
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
  rocksdb::get_perf_context()->Reset();
  size_t removed = 0;
  for (DirectoryPage page; !page.end;) {
    page = names_->read_directory(kRootInode, 0, kPage).value();
    std::ranges::reverse(page.entries);
    for (const DirectoryEntry& entry : page.entries)
      removed += names_->remove(kRootInode, entry.name).has_value();
  }
  EXPECT_TRUE(names_->read_directory(kRootInode, 0, kPage).value().entries.empty());
  EXPECT_EQ(removed, kNames);
  // Once over each, not once over all before for each page.
  EXPECT_LE(rocksdb::get_perf_context()->internal_delete_skipped_count, kNames);
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
}

TEST_P(Names, TheFirstNameIsListedWhateverBecameOfIt) {
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(names_->create(kRootInode, name, {.type = FileType::kFifo}));
  const auto listed = [&] {
    std::string all;
    const DirectoryPage page = names_->read_directory(kRootInode, 0, 10).value();
    for (const DirectoryEntry& entry : page.entries) all += entry.name;
    return all;
  };
  EXPECT_EQ(listed(), "abc");
  // A name that is renamed in its directory keeps its place.
  ASSERT_TRUE(names_->rename(kRootInode, "a", kRootInode, "c"));
  EXPECT_EQ(listed(), "cb");
  ASSERT_TRUE(names_->remove(kRootInode, "c"));
  EXPECT_EQ(listed(), "b");
  ASSERT_TRUE(names_->remove(kRootInode, "b"));
  EXPECT_EQ(listed(), "");
  ASSERT_TRUE(names_->create(kRootInode, "d", {.type = FileType::kFifo}));
  EXPECT_EQ(listed(), "d");
  restart();
  EXPECT_EQ(listed(), "d");
}

PNFSRDMA_OVER_BOTH_ENGINES(Names);

TEST(NamesWithAStallingStore, ARefusedCommitIsDelayAndChangesNothing) {
  SystemClock clock;
  EventLoop loop(clock);
  MemoryStore store(loop);
  auto names = Namespace::open(store, clock, 1).value();
  store.stall(1);
  const auto refused = names->create(kRootInode, "a", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Status::kDelay);
  EXPECT_EQ(names->lookup(kRootInode, "a").error(), Status::kNoEnt);
  EXPECT_EQ(names->get(kRootInode).value()->size, 0u);
  EXPECT_TRUE(names->create(kRootInode, "a", {}));
  EXPECT_TRUE(check_namespace(store).value().consistent());
}

}  // namespace
}  // namespace pnfsrdma::mds
