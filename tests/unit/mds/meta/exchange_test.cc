// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "server/mds/meta/records.h"
#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class Exchange : public ::testing::Test {
 protected:
  void TearDown() override {
    const auto report = check_namespace(store_);
    ASSERT_TRUE(report);
    for (const std::string& problem : report->problems) ADD_FAILURE() << problem;
  }
  InodeId make(InodeId directory, std::string_view name, FileType type = FileType::kRegular) {
    return names_->create(directory, name, {.type = type, .mode = 0755}).value().inode->id;
  }
  InodeId directory(InodeId parent, std::string_view name) {
    return make(parent, name, FileType::kDirectory);
  }
  InodeId at(InodeId directory, std::string_view name) {
    const auto found = names_->lookup(directory, name);
    return found ? (*found)->id : kNoInode;
  }
  InodePointer inode(InodeId id) { return names_->get(id).value(); }
  Status exchange(InodeId first, std::string_view one, InodeId second, std::string_view other) {
    const auto done = names_->exchange(first, one, second, other);
    return done ? Status::kOk : done.error();
  }

  ManualClock clock_;
  EventLoop loop_{clock_};
  MemoryStore store_{loop_, MemoryStore::Syncing::kManual};
  std::unique_ptr<Namespace> names_ = Namespace::open(store_, clock_, 1).value();
};

TEST_F(Exchange, GivesEachNameTheOthersFile) {
  const InodeId a = make(kRootInode, "a");
  const InodeId b = make(kRootInode, "b");
  const auto done = names_->exchange(kRootInode, "a", kRootInode, "b").value();
  EXPECT_EQ(at(kRootInode, "a"), b);
  EXPECT_EQ(at(kRootInode, "b"), a);
  EXPECT_GT(done.first.after, done.first.before);
  EXPECT_EQ(done.first.after, done.second.after);
  EXPECT_EQ(done.first.after, inode(kRootInode)->change);
}

TEST_F(Exchange, ChangesTheTimesOfBothDirectoriesAndOnceTheFiles) {
  const InodeId d = directory(kRootInode, "d");
  const InodeId a = make(kRootInode, "a");
  const InodeId b = make(d, "b");
  const InodePointer a_before = inode(a), b_before = inode(b), d_before = inode(d);
  clock_.advance(std::chrono::seconds(5));
  const auto done = names_->exchange(kRootInode, "a", d, "b").value();
  for (const auto& [id, before] : {std::pair(a, a_before), std::pair(b, b_before)}) {
    EXPECT_GT(inode(id)->ctime, before->ctime);
    EXPECT_EQ(inode(id)->mtime, before->mtime);
    EXPECT_EQ(inode(id)->change, before->change + 1) << "clients tell their own changes by it";
    EXPECT_EQ(inode(id)->nlink, 1u);
  }
  EXPECT_GT(inode(d)->mtime, d_before->mtime);
  EXPECT_EQ(inode(d)->mtime, inode(kRootInode)->mtime);
  EXPECT_EQ(done.second.before, d_before->change);
  EXPECT_EQ(done.second.after, inode(d)->change);
}

TEST_F(Exchange, OfADirectoryAndAFileInAnotherMovesParentAndLinks) {
  const InodeId here = directory(kRootInode, "here");
  const InodeId there = directory(kRootInode, "there");
  const InodeId moved = directory(here, "d");
  make(moved, "inside");
  const InodeId file = make(there, "f");
  EXPECT_EQ(exchange(here, "d", there, "f"), Status::kOk);
  EXPECT_EQ(at(here, "d"), file);
  EXPECT_EQ(at(there, "f"), moved);
  EXPECT_EQ(names_->lookup_parent(moved).value()->id, there);
  EXPECT_EQ(inode(here)->nlink, 2u);
  EXPECT_EQ(inode(there)->nlink, 3u);
}

TEST_F(Exchange, OfTwoFullDirectories) {
  const InodeId a = directory(kRootInode, "a");
  const InodeId b = directory(kRootInode, "b");
  make(a, "x");
  make(b, "y");
  EXPECT_EQ(exchange(kRootInode, "a", kRootInode, "b"), Status::kOk);
  EXPECT_EQ(at(at(kRootInode, "a"), "y"), at(b, "y"));
  EXPECT_EQ(at(at(kRootInode, "b"), "x"), at(a, "x"));
}

TEST_F(Exchange, KeepsThePlaceOfEachNameInItsListing) {
  const InodeId d = directory(kRootInode, "d");
  for (const char* name : {"a", "b", "c"}) make(kRootInode, name);
  for (const char* name : {"x", "y"}) make(d, name);
  const auto names_of = [&](InodeId id) {
    std::string names;
    const DirectoryPage page = names_->read_directory(id, 0, 100).value();
    for (const DirectoryEntry& entry : page.entries) names += entry.name;
    return names;
  };
  EXPECT_EQ(exchange(kRootInode, "c", kRootInode, "a"), Status::kOk);
  EXPECT_EQ(exchange(kRootInode, "d", kRootInode, "b"), Status::kOk);
  EXPECT_EQ(names_of(kRootInode), "dabc");
  EXPECT_EQ(exchange(d, "x", kRootInode, "a"), Status::kOk);
  EXPECT_EQ(names_of(d), "xy");
  EXPECT_EQ(names_of(kRootInode), "dabc");
}

TEST_F(Exchange, RefusesADirectoryAndWhatIsBelowIt) {
  const InodeId a = directory(kRootInode, "a");
  const InodeId b = directory(a, "b");
  make(b, "f");
  EXPECT_EQ(exchange(kRootInode, "a", a, "b"), Status::kInval);
  EXPECT_EQ(exchange(a, "b", kRootInode, "a"), Status::kInval);
  EXPECT_EQ(exchange(b, "f", kRootInode, "a"), Status::kInval);
  EXPECT_EQ(at(kRootInode, "a"), a);
}

TEST_F(Exchange, NeedsBothNamesAndDirectories) {
  const InodeId file = make(kRootInode, "a");
  EXPECT_EQ(exchange(kRootInode, "a", kRootInode, "b"), Status::kNoEnt);
  EXPECT_EQ(exchange(kRootInode, "b", kRootInode, "a"), Status::kNoEnt);
  EXPECT_EQ(exchange(file, "a", kRootInode, "a"), Status::kNotDir);
  EXPECT_EQ(exchange(kRootInode, "a", kRootInode, ".."), Status::kBadName);
}

TEST_F(Exchange, OfTwoNamesOfOneFileDoesNothing) {
  const InodeId file = make(kRootInode, "a");
  names_->link(file, kRootInode, "b").value();
  const uint64_t change = inode(file)->change;
  const auto done = names_->exchange(kRootInode, "a", kRootInode, "b").value();
  EXPECT_EQ(done.first.before, done.first.after);
  EXPECT_EQ(exchange(kRootInode, "a", kRootInode, "a"), Status::kOk);
  EXPECT_EQ(inode(file)->change, change);
}

// A crash leaves all of it or nothing: it is one batch, with what the caller adds.
TEST_F(Exchange, IsOneBatch) {
  const InodeId d = directory(kRootInode, "d");
  const InodeId a = make(kRootInode, "a");
  const InodeId b = directory(d, "b");
  ASSERT_TRUE(store_.sync());
  Batch extra;
  Records::put(extra, RecordKind::kDone, "slot", "done");
  const auto is_noted = [&] { return Records(store_).get(RecordKind::kDone, "slot").value().has_value(); };
  for (const size_t kept : {0u, 1u}) {
    ASSERT_TRUE(names_->exchange(kRootInode, "a", d, "b", extra));
    EXPECT_EQ(store_.unsynced(), 1u);
    names_ = nullptr;
    store_.crash(kept);
    names_ = Namespace::open(store_, clock_, 2).value();
    EXPECT_EQ(at(kRootInode, "a"), kept == 1 ? b : a);
    EXPECT_EQ(at(d, "b"), kept == 1 ? a : b);
    EXPECT_EQ(is_noted(), kept == 1);
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
