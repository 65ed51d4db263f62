// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/permissions.h"

#include <gtest/gtest.h>

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class NoAcls final : public AclReader {
 public:
  std::expected<PosixAcl, Status> access_acl(const Inode& inode) override {
    ADD_FAILURE() << "there is none to read";
    return PosixAcl::of_mode(inode.mode);
  }
};
NoAcls no_acls;

const Requester kRoot{{.uid = 0, .gid = 0, .groups = {}}, no_acls};
const Requester kOwner{{.uid = 10, .gid = 20, .groups = {}}, no_acls};
const Requester kMember{{.uid = 11, .gid = 99, .groups = {5, 20}}, no_acls};
const Requester kOther{{.uid = 12, .gid = 98, .groups = {}}, no_acls};

// The kMay* bits that are granted one by one.
uint32_t allowed(const Requester& who, const Inode& inode) {
  uint32_t bits = 0;
  for (const uint32_t bit : {kMayRead, kMayWrite, kMayExecute}) {
    if (check_access(who, inode, bit) == Status::kOk) bits |= bit;
  }
  return bits;
}

Inode inode(uint32_t mode, FileType type = FileType::kRegular) {
  Inode made;
  made.id = 1;
  made.type = type;
  made.mode = mode;
  made.uid = kOwner.who.uid;
  made.gid = kOwner.who.gid;
  return made;
}
Inode directory(uint32_t mode) {
  return inode(mode, FileType::kDirectory);
}

TEST(Permissions, TheFirstClassThatFitsDecides) {
  const Inode file = inode(0047);
  EXPECT_EQ(allowed(kOwner, file), 0u);
  EXPECT_EQ(allowed(kMember, file), uint32_t{kMayRead});
  EXPECT_EQ(allowed(kOther, file), 7u);
}

TEST(Permissions, RootExecutesOnlyWhatSomebodyMay) {
  EXPECT_EQ(allowed(kRoot, inode(0)), kMayRead | kMayWrite);
  EXPECT_EQ(allowed(kRoot, inode(0010)), 7u);
  EXPECT_EQ(allowed(kRoot, directory(0)), 7u);
}

TEST(Permissions, AccessAnswersForWhatItKnowsOfTheType) {
  const uint32_t all = 0x3f;
  const AccessAnswer file = access_mask(kOwner, inode(0600), all).value();
  EXPECT_EQ(file.supported, kAccessRead | kAccessModify | kAccessExtend | kAccessExecute);
  EXPECT_EQ(file.granted, kAccessRead | kAccessModify | kAccessExtend);
  const AccessAnswer searchable = access_mask(kOther, directory(0755), all).value();
  EXPECT_EQ(searchable.supported, all & ~kAccessExecute);
  EXPECT_EQ(searchable.granted, kAccessRead | kAccessLookup);
  EXPECT_EQ(access_mask(kOther, directory(0733), kAccessDelete | kAccessRead)->granted, kAccessDelete);
}

TEST(Permissions, NamesNeedWriteAndSearch) {
  EXPECT_EQ(check_create(kOwner, directory(0300)), Status::kOk);
  EXPECT_EQ(check_create(kOwner, directory(0200)), Status::kAccess);
  EXPECT_EQ(check_create(kOwner, directory(0500)), Status::kAccess);
}

TEST(Permissions, InAStickyDirectoryOnlyOwnersRemove) {
  const Inode sticky = directory(01777);
  Inode victim = inode(0666);
  victim.uid = kMember.who.uid;
  EXPECT_EQ(check_remove(kMember, sticky, victim), Status::kOk);
  EXPECT_EQ(check_remove(kOther, sticky, victim), Status::kPerm);
  EXPECT_EQ(check_remove(kOwner, sticky, victim), Status::kOk);
  EXPECT_EQ(check_remove(kRoot, sticky, victim), Status::kOk);
  EXPECT_EQ(check_remove(kOther, directory(0777), victim), Status::kOk);
}

TEST(Permissions, AMovedDirectoryMustBeWritableForItsNewParent) {
  Inode source = directory(0777);
  Inode target = directory(0777);
  target.id = 2;
  Inode moved = directory(0555);
  EXPECT_EQ(check_rename(kOwner, source, moved, source, nullptr), Status::kOk);
  EXPECT_EQ(check_rename(kOwner, source, moved, target, nullptr), Status::kAccess);
  EXPECT_EQ(check_rename(kOwner, source, inode(0), target, nullptr), Status::kOk);
  const Inode sticky = directory(01777);
  const Inode replaced = inode(0666);
  EXPECT_EQ(check_rename(kOther, source, inode(0), sticky, &replaced), Status::kPerm);
}

TEST(Permissions, ExchangeNeedsWhatRenameOfEitherNeeds) {
  const Inode here = directory(0777);
  Inode there = directory(0777);
  there.id = 2;
  const Inode file = inode(0);
  Inode child = directory(0555);
  EXPECT_EQ(check_exchange(kOther, here, file, there, file), Status::kOk);
  EXPECT_EQ(check_exchange(kOther, here, file, directory(0755), file), Status::kAccess);
  EXPECT_EQ(check_exchange(kOther, directory(0755), file, here, file), Status::kAccess);
  EXPECT_EQ(check_exchange(kOther, here, file, directory(01777), file), Status::kPerm);
  EXPECT_EQ(check_exchange(kOther, directory(01777), file, here, file), Status::kPerm);
  EXPECT_EQ(check_exchange(kOther, here, child, here, file), Status::kOk);
  EXPECT_EQ(check_exchange(kOther, here, child, there, file), Status::kAccess) << "its parent would change";
  EXPECT_EQ(check_exchange(kOther, here, file, there, child), Status::kAccess);
}

TEST(Permissions, OnlyTheOwnerChangesTheMode) {
  EXPECT_EQ(check_attributes(kOwner, inode(0644), {.mode = 0600}).status, Status::kOk);
  EXPECT_EQ(check_attributes(kMember, inode(0666), {.mode = 0600}).status, Status::kPerm);
  EXPECT_EQ(check_attributes(kRoot, inode(0644), {.mode = 06755}).mode, 06755u);
}

TEST(Permissions, SetgidNeedsMembership) {
  Inode file = inode(0755);
  file.gid = 777;
  EXPECT_EQ(check_attributes(kOwner, file, {.mode = 02755}).mode, 0755u);
  EXPECT_EQ(check_attributes(kOwner, inode(0755), {.mode = 02755}).mode, 02755u);
}

TEST(Permissions, OnlyRootGivesAFileAway) {
  EXPECT_EQ(check_attributes(kOwner, inode(0644), {.uid = 11}).status, Status::kPerm);
  EXPECT_EQ(check_attributes(kOwner, inode(0644), {.uid = 10}).status, Status::kOk);
  EXPECT_EQ(check_attributes(kRoot, inode(0644), {.uid = 11}).status, Status::kOk);
  EXPECT_EQ(check_attributes(kOwner, inode(0644), {.gid = 20}).status, Status::kOk);
  EXPECT_EQ(check_attributes(kOwner, inode(0644), {.gid = 5}).status, Status::kPerm);
  EXPECT_EQ(check_attributes(kMember, inode(0644), {.gid = 5}).status, Status::kPerm);
}

TEST(Permissions, ChangingTheOwnerTakesPrivilegeBits) {
  EXPECT_EQ(check_attributes(kRoot, inode(06755), {.uid = 11}).mode, 0755u);
  EXPECT_EQ(check_attributes(kRoot, inode(02644), {.uid = 11}).mode, std::nullopt);
  EXPECT_EQ(check_attributes(kRoot, directory(02775), {.gid = 11}).mode, std::nullopt);
  EXPECT_EQ(check_attributes(kRoot, inode(0644), {.mode = 04755, .uid = 11}).mode, 04755u);
}

TEST(Permissions, TimesAreSetByTheOwnerAndTouchedByWriters) {
  EXPECT_EQ(check_attributes(kOwner, inode(0), {.times_to_value = true}).status, Status::kOk);
  EXPECT_EQ(check_attributes(kOther, inode(0666), {.times_to_value = true}).status, Status::kPerm);
  EXPECT_EQ(check_attributes(kOther, inode(0666), {.times_to_now = true}).status, Status::kOk);
  EXPECT_EQ(check_attributes(kOther, inode(0644), {.times_to_now = true}).status, Status::kAccess);
}

TEST(Permissions, TruncatingByNameNeedsWrite) {
  EXPECT_EQ(check_attributes(kOther, inode(0644), {.size = true}).status, Status::kAccess);
  EXPECT_EQ(check_attributes(kOther, inode(0646), {.size = true}).status, Status::kOk);
}

}  // namespace
}  // namespace pnfsrdma::mds
