// SPDX-License-Identifier: Apache-2.0
// Snapshots as Namespace and the store show them, over both engines.
#include <gtest/gtest.h>

#include "server/mds/meta/checkpoint_view.h"
#include "server/mds/meta/dead_memory.h"
#include "server/mds/meta/extents.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "server/mds/meta/read_then.h"
#include "server/mds/meta/values.h"
#include "server/mds/meta/xattrs.h"
#include "shared/base/lifetime.h"
#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class NamespaceSnapshots : public OverBothEngines {
 protected:
  NamespaceSnapshots() { start(); }

  void start() { names_ = Namespace::open(*store_, clock_, ++boots_).value(); }
  void restart() {
    names_.reset();
    store_.reopen();
    start();
  }

  template <typename Condition>
  bool run_until(Condition condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) store_.loop().run_once(Milliseconds(5));
    return condition();
  }
  Result<> checkpoint(SnapshotNumber number) {
    std::optional<Result<>> outcome;
    store_->checkpoint(number, [&](Result<> made) { outcome = std::move(made); });
    EXPECT_FALSE(outcome) << "from inside the call";
    EXPECT_TRUE(run_until([&] { return outcome.has_value(); }));
    return *outcome;
  }
  SnapshotNumber take(std::string_view name) {
    clock_.advance(Milliseconds(1000));
    const SnapshotNumber number = names_->snapshots().begin(name, clock_.wall_now()).value();
    EXPECT_TRUE(checkpoint(number));
    EXPECT_TRUE(names_->snapshots().set_state(number, SnapshotState::kReady));
    return number;
  }
  void drop(SnapshotNumber number) {
    ASSERT_TRUE(names_->snapshots().set_state(number, SnapshotState::kGoing));
    std::optional<Result<>> outcome;
    store_->drop_checkpoint(number, [&](Result<> gone) { outcome = std::move(gone); });
    ASSERT_TRUE(run_until([&] { return outcome.has_value(); }));
    EXPECT_TRUE(*outcome);
    ASSERT_TRUE(names_->snapshots().erase(number));
    names_->snapshots().forget(number);
  }
  InodePointer make(InodeId directory, std::string_view name, const NewInode& what = {}) {
    return names_->create(directory, name, what).value().inode;
  }
  std::vector<std::string> list(InodeId directory) {
    std::vector<std::string> found;
    const auto page = names_->read_directory(directory, 0, 100);
    if (!page) return {"error"};
    for (const DirectoryEntry& entry : page->entries) {
      const auto inode = names_->get(entry.inode);
      EXPECT_TRUE(inode && (*inode)->id == entry.inode && (*inode)->type == entry.type) << entry.name;
      found.push_back(entry.name);
    }
    return found;
  }
  std::vector<std::string> keys(std::string_view prefix, std::string_view from = {}) {
    std::vector<std::string> found;
    EXPECT_TRUE(store_->scan(prefix, from, [&](std::string_view key, std::string_view value) {
      found.push_back(std::string(key) + "=" + std::string(value));
      return true;
    }));
    return found;
  }
  void expect_sound() {
    const auto report = check_namespace(*store_).value();
    for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
  }

  ManualClock clock_;
  uint64_t boots_ = 0;
  std::unique_ptr<Namespace> names_;
};

using Texts = std::vector<std::string>;
constexpr InodeId kList = inode_in(kSnapshotList, kRootInode);

TEST_P(NamespaceSnapshots, ShowTheTreeAsItWas) {
  const InodePointer directory = make(kRootInode, "dir", {.type = FileType::kDirectory, .mode = 0755});
  const InodePointer file = make(directory->id, "file", {.mode = 0640});
  make(kRootInode, "gone");
  const Bytes value(3, std::byte{7});
  ASSERT_TRUE(Xattrs(*names_).set(*file, "color", value, XattrMode::kEither));
  const PosixAcl acl = PosixAcl::of({{nfs4::PosixAceTag::kUserObject, 0, 7},
                                     {nfs4::PosixAceTag::kUser, 5, 6},
                                     {nfs4::PosixAceTag::kGroupObject, 0, 4},
                                     {nfs4::PosixAceTag::kMask, 0, 6},
                                     {nfs4::PosixAceTag::kOther, 0, 0}})
                           .value_or(PosixAcl());
  ASSERT_FALSE(acl.empty());
  ASSERT_TRUE(names_->update(file->id, {.access_acl = acl}));
  const Inode before = *names_->get(file->id).value();

  const SnapshotNumber number = take("one");
  ASSERT_TRUE(names_->rename(directory->id, "file", kRootInode, "moved"));
  ASSERT_TRUE(names_->remove(kRootInode, "gone"));
  make(directory->id, "new");
  ASSERT_TRUE(names_->update(file->id, {.mode = 0600, .uid = 9, .access_acl = PosixAcl::of_mode(0600)}));
  ASSERT_TRUE(Xattrs(*names_).remove(*names_->get(file->id).value(), "color"));

  for (int round = 0; round < 2; ++round) {
    const InodeId root = inode_in(number, kRootInode);
    EXPECT_EQ(list(root), (Texts{"dir", "gone"}));
    const InodePointer inside = names_->lookup(root, "dir").value();
    EXPECT_EQ(inside->id, inode_in(number, directory->id));
    EXPECT_EQ(inside->parent, root);
    EXPECT_EQ(names_->lookup_parent(inside->id).value()->id, root);
    EXPECT_EQ(names_->lookup_parent(root).error(), Status::kNoEnt);
    const InodePointer old = names_->lookup(inside->id, "file").value();
    Inode expected = before;
    expected.id = inode_in(number, before.id);
    EXPECT_EQ(*old, expected);
    EXPECT_EQ(names_->access_acl(*old).value(), acl);
    EXPECT_EQ(Xattrs(*names_).get(*old, "color").value(), value);
    EXPECT_EQ(names_->last_path(old->id), "/.snapshots/one/dir/file");
    EXPECT_EQ(list(directory->id), Texts{"new"});
    EXPECT_EQ(names_->lookup(inside->id, "new").error(), Status::kNoEnt);
    expect_sound();
    restart();
  }
}

TEST_P(NamespaceSnapshots, EachHasItsOwnTree) {
  make(kRootInode, "a");
  const SnapshotNumber one = take("one");
  make(kRootInode, "b");
  const SnapshotNumber two = take("two");
  ASSERT_TRUE(names_->remove(kRootInode, "a"));
  EXPECT_EQ(list(inode_in(one, kRootInode)), Texts{"a"});
  EXPECT_EQ(list(inode_in(two, kRootInode)), (Texts{"a", "b"}));
  EXPECT_EQ(list(kRootInode), Texts{"b"});
  drop(one);
  EXPECT_EQ(names_->get(inode_in(one, kRootInode)).error(), Status::kStale);
  restart();
  EXPECT_EQ(names_->get(inode_in(one, kRootInode)).error(), Status::kStale);
  EXPECT_EQ(list(inode_in(two, kRootInode)), (Texts{"a", "b"}));
  EXPECT_EQ(take("three"), 3U);
  expect_sound();
}

TEST_P(NamespaceSnapshots, OneThatGoesIsStaleWhateverIsCached) {
  const SnapshotNumber number = take("one");
  ASSERT_TRUE(names_->get(inode_in(number, kRootInode)));
  ASSERT_TRUE(names_->snapshots().set_state(number, SnapshotState::kGoing));
  EXPECT_EQ(names_->get(inode_in(number, kRootInode)).error(), Status::kStale);
  EXPECT_EQ(names_->read_directory(inode_in(number, kRootInode), 0, 9).error(), Status::kStale);
  EXPECT_EQ(names_->get(inode_in(77, kRootInode)).error(), Status::kStale);
}

TEST_P(NamespaceSnapshots, NothingInThemChanges) {
  const InodePointer file = make(kRootInode, "file");
  const InodeId inside = inode_in(take("one"), file->id);
  const InodeId root = inode_in(1, kRootInode);
  for (const InodeId place : {root, kList}) {
    EXPECT_EQ(names_->create(place, "x", {}).error(), Status::kRoFs);
    EXPECT_EQ(names_->remove(place, "file").error(), Status::kRoFs);
    EXPECT_EQ(names_->rename(place, "file", kRootInode, "y").error(), Status::kRoFs);
    EXPECT_EQ(names_->rename(kRootInode, "file", place, "y").error(), Status::kRoFs);
    EXPECT_EQ(names_->exchange(kRootInode, "file", place, "file").error(), Status::kRoFs);
    EXPECT_EQ(names_->link(file->id, place, "y").error(), Status::kRoFs);
    EXPECT_EQ(names_->update(place, {.mode = 0}).error(), Status::kRoFs);
    EXPECT_EQ(names_->destroy(place).error(), Status::kRoFs);
  }
  EXPECT_EQ(names_->link(inside, kRootInode, "y").error(), Status::kRoFs);
  const InodePointer old = names_->get(inside).value();
  EXPECT_EQ(Xattrs(*names_).set(*old, "a", {}, XattrMode::kEither).error(), Status::kRoFs);
  EXPECT_EQ(Xattrs(*names_).remove(*old, "a").error(), Status::kRoFs);
  const Sequence before = store_->last_namespace_sequence();
  EXPECT_EQ(*names_->touch(inside).value(), *old);
  EXPECT_EQ(*names_->touch_atime(inside).value(), *old);
  EXPECT_EQ(store_->last_namespace_sequence(), before);
  // Whoever writes the row himself.
  Batch batch;
  batch.put("live", "1");
  batch.erase(number_key(kExtentTag, inside, 7));
  const auto refused = store_->commit(batch, CommitKind::kState);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EROFS);
  EXPECT_EQ(store_->get("live").value(), std::nullopt);
}

TEST_P(NamespaceSnapshots, AreListed) {
  const InodePointer above = names_->get(kRootInode).value();
  InodePointer all = names_->get(kList).value();
  EXPECT_EQ(all->size, 0U);
  EXPECT_EQ(all->generation, above->generation);
  EXPECT_EQ(all->mtime, above->created);
  EXPECT_TRUE(list(kList).empty());
  const uint64_t change = all->change;
  take("b");
  take("a");
  all = names_->get(kList).value();
  EXPECT_EQ(all->id, kList);
  EXPECT_EQ(all->parent, kRootInode);
  EXPECT_EQ(all->mode, 0555U);
  EXPECT_EQ(all->size, 2U);
  EXPECT_EQ(all->mtime, names_->snapshots().find("a")->created);
  EXPECT_GT(all->change, change);
  EXPECT_EQ(list(kList), (Texts{"b", "a"}));
  const DirectoryPage first = names_->read_directory(kList, 0, 1).value();
  ASSERT_EQ(first.entries.size(), 1U);
  EXPECT_FALSE(first.end);
  const DirectoryPage second = names_->read_directory(kList, first.entries[0].cookie, 1).value();
  ASSERT_EQ(second.entries.size(), 1U);
  EXPECT_EQ(second.entries[0].name, "a");
  EXPECT_TRUE(second.end);
  EXPECT_EQ(names_->lookup(kList, "a").value()->id, inode_in(2, kRootInode));
  EXPECT_EQ(names_->lookup(kList, "c").error(), Status::kNoEnt);
  EXPECT_EQ(names_->lookup_parent(kList).value()->id, kRootInode);
  EXPECT_EQ(names_->last_path(kList), "/.snapshots");
  const uint64_t later = all->change;
  drop(1);
  EXPECT_GT(names_->get(kList).value()->change, later);
  const uint64_t last = names_->get(kList).value()->change;
  restart();
  EXPECT_EQ(names_->get(kList).value()->change, last);
  EXPECT_EQ(list(kList), Texts{"a"});
}

TEST_P(NamespaceSnapshots, ADirectoryListsThoseThatHaveIt) {
  take("before");
  const InodePointer export_root = make(kRootInode, "export", {.type = FileType::kDirectory});
  take("after");
  const InodeId all = inode_in(kSnapshotList, export_root->id);
  EXPECT_EQ(names_->lookup(all, "after").value()->id, inode_in(2, export_root->id));
  EXPECT_EQ(names_->lookup(all, "before").error(), Status::kNoEnt);
  ASSERT_TRUE(names_->remove(kRootInode, "export"));
  EXPECT_EQ(names_->get(all).error(), Status::kStale);
}

TEST_P(NamespaceSnapshots, CommitsWaitUntilTheCopyIsThere) {
  const SnapshotNumber number = names_->snapshots().begin("one", {}).value();
  std::optional<Result<>> outcome;
  store_->checkpoint(number, [&](Result<> made) { outcome = std::move(made); });
  EXPECT_TRUE(store_->makes_checkpoint());
  EXPECT_EQ(names_->create(kRootInode, "new", {}).error(), Status::kDelay);
  std::optional<Result<>> second;
  store_->checkpoint(number + 1, [&](Result<> made) { second = std::move(made); });
  ASSERT_TRUE(run_until([&] { return outcome && second; }));
  EXPECT_TRUE(*outcome);
  ASSERT_FALSE(*second);
  EXPECT_EQ(second->error().number(), EBUSY);
  EXPECT_FALSE(store_->makes_checkpoint());
  make(kRootInode, "new");
  EXPECT_EQ(checkpoint(number).error().number(), EEXIST);
  make(kRootInode, "newer");
}

TEST_P(NamespaceSnapshots, RowsOfAnInodeAreScannedInItsSnapshotAndAllOthersAreLive) {
  const InodePointer file = make(kRootInode, "file");
  Batch batch;
  for (const uint64_t end : {1, 2, 3})
    batch.put(number_key(kExtentTag, file->id, end), "old" + std::to_string(end));
  ASSERT_TRUE(store_->commit(batch, CommitKind::kState));
  bool prepared = false;
  store_->prepare_checkpoint([&] { prepared = true; });
  ASSERT_TRUE(run_until([&] { return prepared; }));
  ASSERT_TRUE(checkpoint(1));
  Batch changes;
  changes.erase(number_key(kExtentTag, file->id, 1));
  changes.put(number_key(kExtentTag, file->id, 2), "new");
  ASSERT_TRUE(store_->commit(changes, CommitKind::kState));
  const InodeId inside = inode_in(1, file->id);
  const auto row = [&](uint64_t end) {
    return number_key(kExtentTag, inside, end) + "=old" + std::to_string(end);
  };
  EXPECT_EQ(keys(number_key(kExtentTag, inside)), (Texts{row(1), row(2), row(3)}));
  EXPECT_EQ(keys(number_key(kExtentTag, inside), number_key(kExtentTag, inside, 2)), (Texts{row(2), row(3)}));
  EXPECT_TRUE(keys(number_key(kExtentTag, inside), number_key(kExtentTag, inside + 1, 0)).empty());
  EXPECT_TRUE(keys(number_key(kExtentTag, inside + 1)).empty());
  EXPECT_EQ(store_->get(number_key(kExtentTag, inside, 2)).value(), "old2");
  EXPECT_EQ(keys(tag_prefix(kExtentTag)).size(), 2U);
  EXPECT_TRUE(keys(number_key(kExtentTag, inode_in(kSnapshotList, file->id))).empty());
  EXPECT_EQ(store_->get(number_key(kExtentTag, inode_in(2, file->id), 2)).error().number(), EIO);
}

TEST_P(NamespaceSnapshots, ARequestThatMissesTheirRowsRunsAgain) {
  const InodePointer directory = make(kRootInode, "dir", {.type = FileType::kDirectory});
  make(directory->id, "file");
  make(directory->id, "other");
  const InodeId root = inode_in(take("one"), kRootInode);
  restart();  // none is open
  const uint64_t blocking = store_->read_counts().blocking;
  if (GetParam() == Engine::kMemory) static_cast<MemoryStore&>(*store_).go_cold();
  RequestReads reads(*store_);
  {
    const RequestReads::Run run(reads);
    EXPECT_EQ(names_->lookup(root, "dir").error(), kSuspended);
  }
  EXPECT_TRUE(reads.missed());
  reads.clear();
  Lifetime life;
  std::optional<size_t> entries;
  read_then(
      *store_, life.token(),
      [&]() -> Outcome<DirectoryPage> {
        TRY_ASSIGN(const InodePointer inside, names_->lookup(root, "dir"));
        return names_->read_directory(inside->id, 0, 100);
      },
      [&](const Outcome<DirectoryPage>& page) { entries = page ? page->entries.size() : 99; });
  EXPECT_FALSE(entries);
  ASSERT_TRUE(run_until([&] { return entries.has_value(); }));
  EXPECT_EQ(entries, 2U);
  EXPECT_EQ(store_->read_counts().blocking, blocking);
}

TEST_P(NamespaceSnapshots, AStartForgetsCopiesThatAreNotReady) {
  make(kRootInode, "file");
  ASSERT_TRUE(names_->snapshots().begin("one", {}));
  ASSERT_TRUE(checkpoint(1));
  take("two");
  restart();
  EXPECT_TRUE(checkpoint(1)) << "there was one of the same number";
  EXPECT_EQ(list(inode_in(2, kRootInode)), Texts{"file"});
}

TEST_P(NamespaceSnapshots, WhoTookItAndWhetherItIsPinnedIsOnRecord) {
  const auto version = [&](SnapshotNumber number) {
    return value_version(*store_->get(number_key(kSnapshotTag, number)).value());
  };
  Snapshots& snapshots = names_->snapshots();
  const SnapshotNumber own = take("own");
  const SnapshotNumber hourly = snapshots.begin("hourly", {.seconds = 7}, SnapshotClass::kHourly).value();
  ASSERT_TRUE(checkpoint(hourly));
  ASSERT_TRUE(snapshots.set_state(hourly, SnapshotState::kReady));
  EXPECT_EQ(version(own), kValueVersion);  // as older programs have it
  EXPECT_EQ(version(hourly), kMarkedVersion);
  ASSERT_TRUE(snapshots.set_pinned(own, true));
  EXPECT_EQ(snapshots.set_pinned(77, true).error().number(), ENOENT);
  restart();
  const Snapshots& again = names_->snapshots();
  EXPECT_TRUE(again.find(own)->pinned);
  EXPECT_EQ(again.find(own)->schedule, SnapshotClass::kNone);
  EXPECT_EQ(again.find(own)->name, "own");
  EXPECT_EQ(again.find(hourly)->schedule, SnapshotClass::kHourly);
  EXPECT_FALSE(again.find(hourly)->pinned);
  EXPECT_EQ(again.find(hourly)->created.seconds, 7);
  EXPECT_TRUE(again.find(hourly)->is_ready());
  EXPECT_TRUE(check_namespace(*store_).value().consistent());
  ASSERT_TRUE(names_->snapshots().set_pinned(own, false));
  EXPECT_EQ(version(own), kValueVersion);
  drop(hourly);
  restart();
  EXPECT_EQ(names_->snapshots().all().size(), 1U);
}

TEST_P(NamespaceSnapshots, ARecordThatCannotBeReadIsRefused) {
  take("one");
  Batch batch;
  put_value(batch, number_key(kSnapshotTag, 1),
            StoredMarkedSnapshot{.snapshot = {.name = "one", .created = {}, .state = SnapshotState::kReady},
                                 .schedule = static_cast<SnapshotClass>(5),
                                 .pinned = false},
            kMarkedVersion);
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  EXPECT_EQ(Snapshots::open(*store_).error().number(), EUCLEAN);
  EXPECT_FALSE(check_namespace(*store_).value().consistent());
}

TEST_P(NamespaceSnapshots, ACopyThatIsGoneIsFoundByTheCheck) {
  make(kRootInode, "file");
  take("one");
  expect_sound();
  std::optional<Result<>> dropped;
  store_->drop_checkpoint(1, [&](Result<> gone) { dropped = std::move(gone); });
  ASSERT_TRUE(run_until([&] { return dropped.has_value(); }));
  const auto report = check_namespace(*store_).value();
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("snapshot 1 ('one')"), std::string::npos) << report.problems[0];
  EXPECT_EQ(names_->get(inode_in(1, kRootInode)).error(), Status::kIo);
  make(kRootInode, "live");
}

// As if its memory had been freed, and another file had got it.
TEST_P(NamespaceSnapshots, MemoryThatIsNotItsOwnAnyMoreIsFoundByTheCheck) {
  const InodeId file = make(kRootInode, "file")->id;
  const auto give = [&](InodeId inode, SnapshotNumber born) {
    ExtentChange change(*store_, inode);
    EXPECT_TRUE(change.insert({.file_offset = 0, .logical = kGrainSize, .length = kGrainSize, .born = born}));
    Batch batch;
    change.write_to(batch);
    EXPECT_TRUE(names_->update(inode, {.size = kGrainSize, .space_used = kGrainSize}, batch));
  };
  const auto take_away = [&](InodeId inode) {
    ExtentChange change(*store_, inode);
    EXPECT_TRUE(change.remove(0, kGrainSize));
    Batch batch;
    change.write_to(batch);
    EXPECT_TRUE(names_->update(inode, {.size = 0, .space_used = 0}, batch));
  };
  give(file, 0);
  take("one");
  expect_sound();
  take_away(file);
  EXPECT_EQ(check_namespace(*store_).value().problems.size(), 1U) << "freed";
  give(make(kRootInode, "other")->id, 1);
  EXPECT_EQ(check_namespace(*store_).value().problems.size(), 1U) << "given to another";
  take_away(names_->lookup(kRootInode, "other").value()->id);
  Batch batch;
  const DeadRun run{{kGrainSize, kGrainSize}, 0, 1};
  DeadMemory::put(batch, run);
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  expect_sound();
}

TEST_P(NamespaceSnapshots, InodeNumbersEndWhereThoseOfSnapshotsBegin) {
  Batch batch;
  put_value(batch, meta_key("next-inode"), StoredNumber{kLiveInodesEnd - 1});
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  restart();
  make(kRootInode, "last");
  EXPECT_EQ(names_->create(kRootInode, "more", {}).error(), Status::kNoSpc);
}

PNFSRDMA_OVER_BOTH_ENGINES(NamespaceSnapshots);

}  // namespace
}  // namespace pnfsrdma::mds
