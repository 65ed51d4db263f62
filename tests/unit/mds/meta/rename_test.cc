// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class Rename : public ::testing::Test {
 protected:
  void SetUp() override {
    names_->set_in_use([](InodeId) { return false; });
  }
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
  Status rename(InodeId source, std::string_view from, InodeId target, std::string_view to) {
    const auto renamed = names_->rename(source, from, target, to);
    return renamed ? Status::kOk : renamed.error();
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  MemoryStore store_{loop_};
  std::unique_ptr<Namespace> names_ = Namespace::open(store_, clock_, 1).value();
};

TEST_F(Rename, GivesAFileAnotherName) {
  const InodeId file = make(kRootInode, "a");
  const auto renamed = names_->rename(kRootInode, "a", kRootInode, "b").value();
  EXPECT_EQ(renamed.inode->id, file);
  EXPECT_GT(renamed.source.after, renamed.source.before);
  EXPECT_EQ(renamed.source.after, renamed.target.after);
  EXPECT_FALSE(renamed.replaced);
  EXPECT_EQ(at(kRootInode, "a"), kNoInode);
  EXPECT_EQ(at(kRootInode, "b"), file);
}

// Else a listing that renames what it meets meets it again behind all others, without end.
TEST_F(Rename, KeepsThePlaceInTheListingOfTheSameDirectory) {
  for (const char* name : {"a", "b", "c"}) make(kRootInode, name);
  const auto place = [&](std::string_view name) {
    const DirectoryPage page = names_->read_directory(kRootInode, 0, 100).value();
    for (const DirectoryEntry& entry : page.entries) {
      if (entry.name == name) return entry.cookie;
    }
    return uint64_t{0};
  };
  const uint64_t first = place("a");
  EXPECT_EQ(rename(kRootInode, "a", kRootInode, "d"), Status::kOk);
  EXPECT_EQ(place("d"), first);
  EXPECT_EQ(rename(kRootInode, "d", kRootInode, "b"), Status::kOk);
  EXPECT_EQ(place("b"), first);
  EXPECT_EQ(names_->read_directory(kRootInode, 0, 100).value().entries.size(), 2u);
  const InodeId elsewhere = directory(kRootInode, "directory");
  make(elsewhere, "x");
  EXPECT_EQ(rename(kRootInode, "b", elsewhere, "b"), Status::kOk);
  const auto entries = names_->read_directory(elsewhere, 0, 100).value().entries;
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries.back().name, "b");
}

TEST_F(Rename, MovesADirectoryToAnotherParent) {
  const InodeId a = directory(kRootInode, "a");
  const InodeId b = directory(kRootInode, "b");
  const InodeId child = directory(a, "child");
  EXPECT_EQ(rename(a, "child", b, "moved"), Status::kOk);
  EXPECT_EQ(names_->lookup_parent(child).value()->id, b);
  EXPECT_EQ(names_->get(a).value()->nlink, 2u);
  EXPECT_EQ(names_->get(b).value()->nlink, 3u);
}

TEST_F(Rename, ReplacesAFile) {
  const InodeId file = make(kRootInode, "a");
  const InodeId old = make(kRootInode, "b");
  const auto renamed = names_->rename(kRootInode, "a", kRootInode, "b").value();
  ASSERT_TRUE(renamed.replaced);
  EXPECT_EQ(renamed.replaced->inode->id, old);
  EXPECT_EQ(renamed.replaced->inode->nlink, 0u);
  EXPECT_FALSE(renamed.replaced->orphaned);
  EXPECT_EQ(at(kRootInode, "b"), file);
  EXPECT_EQ(names_->get(old).error(), Status::kStale);
}

TEST_F(Rename, KeepsAReplacedFileThatIsInUseAsAnOrphan) {
  make(kRootInode, "a");
  const InodeId old = make(kRootInode, "b");
  names_->set_in_use([&](InodeId id) { return id == old; });
  EXPECT_TRUE(names_->rename(kRootInode, "a", kRootInode, "b").value().replaced->orphaned);
  EXPECT_EQ(names_->orphans().value(), std::vector<InodeId>{old});
}

TEST_F(Rename, KeepsTheOtherLinksOfAReplacedFile) {
  make(kRootInode, "a");
  const InodeId old = make(kRootInode, "b");
  names_->link(old, kRootInode, "c").value();
  EXPECT_EQ(rename(kRootInode, "a", kRootInode, "b"), Status::kOk);
  EXPECT_EQ(at(kRootInode, "c"), old);
  EXPECT_EQ(names_->get(old).value()->nlink, 1u);
}

TEST_F(Rename, ReplacesAnEmptyDirectoryByADirectory) {
  const InodeId a = directory(kRootInode, "a");
  const InodeId b = directory(kRootInode, "b");
  make(b, "file");
  EXPECT_EQ(rename(kRootInode, "a", kRootInode, "b"), Status::kNotEmpty);
  names_->remove(b, "file").value();
  EXPECT_EQ(rename(kRootInode, "a", kRootInode, "b"), Status::kOk);
  EXPECT_EQ(at(kRootInode, "b"), a);
  EXPECT_EQ(names_->get(kRootInode).value()->nlink, 3u);
}

TEST_F(Rename, RefusesADirectoryOverAFileAndTheReverse) {
  directory(kRootInode, "dir");
  make(kRootInode, "file");
  EXPECT_EQ(rename(kRootInode, "dir", kRootInode, "file"), Status::kExist);
  EXPECT_EQ(rename(kRootInode, "file", kRootInode, "dir"), Status::kExist);
}

TEST_F(Rename, RefusesToPutADirectoryBelowItself) {
  const InodeId a = directory(kRootInode, "a");
  const InodeId b = directory(a, "b");
  const InodeId c = directory(b, "c");
  EXPECT_EQ(rename(kRootInode, "a", a, "x"), Status::kInval);
  EXPECT_EQ(rename(kRootInode, "a", c, "x"), Status::kInval);
  EXPECT_EQ(rename(a, "b", c, "x"), Status::kInval);
  EXPECT_EQ(rename(b, "c", kRootInode, "c"), Status::kOk);
}

TEST_F(Rename, RefusesToReplaceAnAncestor) {
  const InodeId a = directory(kRootInode, "a");
  directory(a, "b");
  EXPECT_EQ(rename(a, "b", kRootInode, "a"), Status::kNotEmpty);
}

TEST_F(Rename, OfTwoNamesOfOneFileDoesNothing) {
  const InodeId file = make(kRootInode, "a");
  names_->link(file, kRootInode, "b").value();
  const auto renamed = names_->rename(kRootInode, "a", kRootInode, "b").value();
  EXPECT_EQ(renamed.source.before, renamed.source.after);
  EXPECT_EQ(at(kRootInode, "a"), file);
  EXPECT_EQ(at(kRootInode, "b"), file);
  EXPECT_EQ(rename(kRootInode, "a", kRootInode, "a"), Status::kOk);
}

TEST_F(Rename, NeedsASourceAndDirectories) {
  const InodeId file = make(kRootInode, "file");
  EXPECT_EQ(rename(kRootInode, "none", kRootInode, "b"), Status::kNoEnt);
  EXPECT_EQ(rename(file, "x", kRootInode, "b"), Status::kNotDir);
  EXPECT_EQ(rename(kRootInode, "file", file, "b"), Status::kNotDir);
  EXPECT_EQ(rename(kRootInode, "file", kRootInode, ".."), Status::kBadName);
  EXPECT_EQ(rename(kRootInode, "file", 4711, "b"), Status::kStale);
}

}  // namespace
}  // namespace pnfsrdma::mds
