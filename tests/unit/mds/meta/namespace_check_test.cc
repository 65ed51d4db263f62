// SPDX-License-Identifier: Apache-2.0
// A checker that never complains is worth nothing: each kind of damage is made and must be found.
#include "server/mds/meta/namespace_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/mds/meta/extents.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/values.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Damage : public ::testing::Test {
 protected:
  void SetUp() override {
    auto names = Namespace::open(store_, clock_, 1).value();
    directory_ = names->create(kRootInode, "dir", {.type = FileType::kDirectory}).value().inode;
    file_ = names->create(directory_->id, "file", {}).value().inode;
    other_ = names->create(kRootInode, "other", {}).value().inode;
    const auto orphan = names->create(kRootInode, "orphan", {}).value().inode;
    names->remove(kRootInode, "orphan").value();
    orphan_ = names->get(orphan->id).value();
    add_extent(file_->id, {0, kGrainSize, kGrainSize});
    Inode with_space = *file_;
    with_space.space_used = kGrainSize;
    put(with_space);
    directory_ = names->get(directory_->id).value();
    ASSERT_THAT(problems(), ::testing::IsEmpty());
  }

  void commit(const Batch& batch) { ASSERT_TRUE(store_.commit(batch, CommitKind::kNamespace)); }
  void put(const Inode& inode) {
    Batch batch;
    put_value(batch, number_key(kInodeTag, inode.id), inode);
    commit(batch);
  }
  void erase(const std::string& key) {
    Batch batch;
    batch.erase(key);
    commit(batch);
  }
  void add_extent(InodeId inode, const Extent& extent) {
    Batch batch;
    put_value(batch, number_key(kExtentTag, inode, extent.end()),
              StoredExtent{extent.logical, extent.length});
    commit(batch);
  }
  void put_share(uint64_t end, const StoredShare& share) {
    Batch batch;
    put_value(batch, number_key(kShareTag, end), share);
    commit(batch);
  }
  std::vector<std::string> problems() { return check_namespace(store_).value().problems; }
  void expect(const std::string& words) { EXPECT_THAT(problems(), Contains(HasSubstr(words))); }

  SystemClock clock_;
  EventLoop loop_{clock_};
  MemoryStore store_{loop_};
  InodePointer directory_, file_, other_, orphan_;
};

TEST_F(Damage, NothingIsWrongWithWhatWasNotTouched) {
  const auto report = check_namespace(store_).value();
  EXPECT_TRUE(report.consistent());
  EXPECT_EQ(report.inodes, 5u);
  EXPECT_EQ(report.directories, 2u);
  EXPECT_EQ(report.names, 3u);
  EXPECT_EQ(report.orphans, 1u);
  EXPECT_EQ(report.extent_bytes, kGrainSize);
}

TEST_F(Damage, ADanglingName) {
  erase(number_key(kInodeTag, other_->id));
  expect("dangles");
}

TEST_F(Damage, AWrongLinkCount) {
  Inode wrong = *other_;
  ++wrong.nlink;
  put(wrong);
  expect("link count");
}

TEST_F(Damage, AWrongDirectoryLinkCountAndSize) {
  Inode wrong = *directory_;
  ++wrong.nlink;
  ++wrong.size;
  put(wrong);
  expect("has link count");
  expect("entries, not");
}

TEST_F(Damage, AFileWithoutAName) {
  erase(name_key(kRootInode, "other"));
  expect("the orphan list is wrong");
  expect("has no such name");
}

TEST_F(Damage, ANameWithoutACookie) {
  erase(number_key(kCookieTag, directory_->id, 3));
  expect("cookies");
}

TEST_F(Damage, AWrongParent) {
  Inode wrong = *directory_;
  wrong.parent = directory_->id;
  put(wrong);
  expect("has parent");
  expect("does not lead to the root");
}

TEST_F(Damage, ALostOrphanRecord) {
  erase(number_key(kOrphanTag, orphan_->id));
  expect("orphan");
}

TEST_F(Damage, AnOrphanRecordOfNothing) {
  erase(number_key(kInodeTag, orphan_->id));
  expect("does not exist");
}

TEST_F(Damage, ExtentsOfTwoFilesInOnePlace) {
  add_extent(other_->id, {0, kGrainSize, kGrainSize});
  expect("2 extents name it, the record of shared memory says 0: files ");
  expect("its extents have");
}

TEST_F(Damage, SharedMemoryIsInOrderWhenItsRecordAndItsFilesSaySo) {
  add_extent(other_->id, {0, kGrainSize, kGrainSize});
  put_share(2 * kGrainSize, {kGrainSize, 2});
  Inode shares = *file_;
  shares.space_used = kGrainSize;
  shares.flags |= kInodeShares;
  put(shares);
  Inode other = *other_;
  other.space_used = kGrainSize;
  put(other);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("its flag says it has none")));
  other.flags |= kInodeShares;
  put(other);
  EXPECT_THAT(problems(), ::testing::IsEmpty());
}

TEST_F(Damage, AWrongNumberOfNames) {
  put_share(2 * kGrainSize, {kGrainSize, 2});
  expect("1 extents name it, the record of shared memory says 2: files ");
  put_share(2 * kGrainSize, {kGrainSize, 1});
  expect("is impossible");
}

TEST_F(Damage, SharedRunsThatOverlap) {
  put_share(9 * kGrainSize, {4 * kGrainSize, 2});
  put_share(8 * kGrainSize, {kGrainSize, 2});
  expect("two shared runs overlap");
}

TEST_F(Damage, ExtentsOfOneFileThatOverlap) {
  add_extent(file_->id, {0, 10 * kGrainSize, 2 * kGrainSize});
  expect("two extents at");
}

TEST_F(Damage, AnExtentOfNoFile) {
  add_extent(4711, {0, 10 * kGrainSize, kGrainSize});
  expect("which is no file");
}

TEST_F(Damage, AnExtentOfHalfAGrain) {
  add_extent(other_->id, {0, 512, 512});
  expect("not whole grains");
}

TEST_F(Damage, ADirtyTailOfNoFile) {
  Batch batch;
  Extents::mark_tail_dirty(batch, directory_->id);
  commit(batch);
  expect("dirty tail");
}

TEST_F(Damage, AnInodeAboveTheCounter) {
  Batch batch;
  put_value(batch, meta_key("next-inode"), StoredNumber{2});
  commit(batch);
  expect("not below the inode counter");
}

TEST_F(Damage, AValueThatCannotBeRead) {
  Batch batch;
  batch.put(number_key(kInodeTag, other_->id), "garbage");
  commit(batch);
  expect("cannot be read");
}

}  // namespace
}  // namespace pnfsrdma::mds
