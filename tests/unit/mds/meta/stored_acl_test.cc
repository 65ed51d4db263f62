// SPDX-License-Identifier: Apache-2.0
// The ACLs of inodes as rows of the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "server/mds/meta/values.h"
#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::PosixAceTag;
using nfs4::Status;

const PosixAcl kExtended = *PosixAcl::of({{PosixAceTag::kUserObject, 0, 7},
                                          {PosixAceTag::kUser, 1000, 6},
                                          {PosixAceTag::kGroupObject, 0, 1},
                                          {PosixAceTag::kMask, 0, 4},
                                          {PosixAceTag::kOther, 0, 0}});

class StoredAclTest : public OverBothEngines {
 protected:
  StoredAclTest() { open(1); }
  void TearDown() override {
    const auto report = check_namespace(*store_);
    ASSERT_TRUE(report);
    for (const std::string& problem : report->problems) ADD_FAILURE() << problem;
  }

  void open(uint64_t boot) {
    names_ = Namespace::open(*store_, clock_, boot).value();
    names_->set_in_use([](InodeId) { return false; });
  }
  void reopen() {
    names_.reset();
    store_.reopen();
    open(2);
  }
  InodePointer make(std::string_view name, NewInode what = {}) {
    what.mode = 0644;
    return names_->create(kRootInode, name, what).value().inode;
  }
  InodePointer now(const InodePointer& inode) { return names_->get(inode->id).value(); }
  void set_access(const InodePointer& inode, const PosixAcl& acl) {
    ASSERT_TRUE(names_->update(inode->id, {.access_acl = acl}));
  }
  PosixAcl access(const InodePointer& inode) { return names_->access_acl(*now(inode)).value(); }
  PosixAcl inherited(const InodePointer& inode) { return names_->default_acl(*now(inode)).value(); }
  bool has_row(const InodePointer& inode, AclKind kind = AclKind::kAccess) {
    return store_->get(acl_key(inode->id, kind)).value().has_value();
  }

  ManualClock clock_;
  std::unique_ptr<Namespace> names_;
};

TEST_P(StoredAclTest, AMinimalOneIsTheModeAndNoRow) {
  const InodePointer file = make("f");
  EXPECT_EQ(access(file), PosixAcl::of_mode(0644));
  set_access(file, PosixAcl::of_mode(0751));
  EXPECT_EQ(now(file)->mode, 0751u);
  EXPECT_EQ(now(file)->flags, 0u);
  EXPECT_FALSE(has_row(file));
}

TEST_P(StoredAclTest, AnExtendedOneIsARowAndTheMode) {
  const InodePointer file = make("f");
  ASSERT_TRUE(names_->update(file->id, {.mode = 06755, .access_acl = kExtended}));
  EXPECT_EQ(now(file)->mode, 06740u) << "the mask is the group's bits; what is above them stays";
  EXPECT_EQ(access(file), kExtended);
  ASSERT_TRUE(names_->update(file->id, {.mode = 0721}));
  EXPECT_EQ(access(file).mode_bits(), 0721u);
  EXPECT_EQ(access(file).beyond_mode(), kExtended.beyond_mode())
      << "chmod changes owner, mask and others alone";
  reopen();
  EXPECT_EQ(access(file).mode_bits(), 0721u);
  set_access(file, PosixAcl::of_mode(0600));
  EXPECT_FALSE(has_row(file));
  EXPECT_EQ(now(file)->flags, 0u);
}

TEST_P(StoredAclTest, AreSetAtBirth) {
  const InodePointer directory = make(
      "d", {.type = FileType::kDirectory, .access_acl = kExtended, .default_acl = PosixAcl::of_mode(0750)});
  EXPECT_EQ(directory->mode, 0740u);
  EXPECT_EQ(access(directory), kExtended);
  EXPECT_EQ(inherited(directory), PosixAcl::of_mode(0750));
  reopen();
  EXPECT_EQ(access(directory), kExtended);
  EXPECT_EQ(inherited(directory), PosixAcl::of_mode(0750)) << "a minimal default ACL is one";
  ASSERT_TRUE(names_->update(directory->id, {.default_acl = PosixAcl()}));
  EXPECT_TRUE(inherited(directory).empty());
  EXPECT_FALSE(has_row(directory, AclKind::kDefault));
  EXPECT_TRUE(has_row(directory, AclKind::kAccess));
}

TEST_P(StoredAclTest, GoWithTheInode) {
  const InodePointer directory =
      make("d", {.type = FileType::kDirectory, .access_acl = kExtended, .default_acl = kExtended});
  const InodePointer target = make("t", {.access_acl = kExtended});
  const InodePointer file = make("f", {.access_acl = kExtended});
  ASSERT_TRUE(names_->remove(kRootInode, "d"));
  EXPECT_FALSE(has_row(directory));
  EXPECT_FALSE(has_row(directory, AclKind::kDefault));
  ASSERT_TRUE(names_->rename(kRootInode, "f", kRootInode, "t"));
  EXPECT_FALSE(has_row(target));
  EXPECT_EQ(access(file), kExtended);
  names_->set_in_use([](InodeId) { return true; });
  ASSERT_TRUE(names_->remove(kRootInode, "t").value().orphaned);
  EXPECT_EQ(access(file), kExtended);
  ASSERT_TRUE(names_->destroy(file->id));
  EXPECT_FALSE(has_row(file));
}

TEST_P(StoredAclTest, AChangeMovesChangeAndCtimeAndNotMtime) {
  const InodePointer file = make("f");
  clock_.advance(Milliseconds(5));
  set_access(file, kExtended);
  EXPECT_GT(now(file)->change, file->change);
  EXPECT_EQ(now(file)->ctime, clock_.wall_now());
  EXPECT_EQ(now(file)->mtime, file->mtime);
}

TEST_P(StoredAclTest, DamageIsFound) {
  const InodePointer file = make("f", {.access_acl = kExtended});
  const InodePointer plain = make("p");
  const auto problems_with = [&](const std::string& key, const AclEntries& entries) {
    Batch batch;
    put_value(batch, key, StoredAcl{{entries.begin(), entries.end()}});
    EXPECT_TRUE(store_->commit(batch, CommitKind::kNamespace));
    const auto found = check_namespace(*store_).value().problems;
    Batch back;
    back.erase(key);
    put_value(back, acl_key(file->id, AclKind::kAccess), StoredAcl{kExtended.beyond_mode()});
    EXPECT_TRUE(store_->commit(back, CommitKind::kNamespace));
    return found;
  };
  using ::testing::Contains;
  using ::testing::HasSubstr;
  EXPECT_THAT(problems_with(acl_key(plain->id, AclKind::kAccess), kExtended.beyond_mode()),
              Contains(HasSubstr("flag of its access ACL")));
  EXPECT_THAT(problems_with(acl_key(777, AclKind::kAccess), kExtended.beyond_mode()),
              Contains(HasSubstr("no inode")));
  EXPECT_THAT(problems_with(acl_key(plain->id, AclKind::kDefault), kExtended.entries()),
              Contains(HasSubstr("cannot be")))
      << "of a file";
  EXPECT_THAT(problems_with(acl_key(file->id, AclKind::kAccess), {{PosixAceTag::kUser, 1000, 6}}),
              Contains(HasSubstr("cannot be")));
  EXPECT_EQ(names_->access_acl(*file).value(), kExtended);
  Batch batch;
  batch.erase(acl_key(file->id, AclKind::kAccess));
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  EXPECT_EQ(names_->access_acl(*file), std::unexpected(Status::kIo))
      << "its mode alone would grant the mask to its group";
  EXPECT_THAT(check_namespace(*store_).value().problems, Contains(HasSubstr("flag of its access ACL")));
  set_access(file, PosixAcl::of_mode(0600));
}

PNFSRDMA_OVER_BOTH_ENGINES(StoredAclTest);

}  // namespace
}  // namespace pnfsrdma::mds
