// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/posix_acl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "server/mds/meta/permissions.h"
#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::PosixAceTag;
using nfs4::Status;

constexpr uint32_t kOwnerId = 10, kGroupId = 20;

AclEntry entry(PosixAceTag tag, uint32_t permissions, uint32_t id = 0) {
  return {tag, id, permissions};
}
// user::rw-, user:7:rwx, group::r--, group:8:-wx, mask::rw-, other::r--, in no order.
AclEntries full() {
  return {entry(PosixAceTag::kMask, 6),       entry(PosixAceTag::kUser, 7, 7),
          entry(PosixAceTag::kUserObject, 6), entry(PosixAceTag::kGroup, 3, 8),
          entry(PosixAceTag::kOther, 4),      entry(PosixAceTag::kGroupObject, 4)};
}

TEST(PosixAcl, IsValidAsAclValidSays) {
  EXPECT_TRUE(PosixAcl::of(full()));
  EXPECT_TRUE(PosixAcl::of(PosixAcl::of_mode(0754).entries()));
  EXPECT_FALSE(PosixAcl::of({})) << "nothing is no ACL";
  for (size_t left_out = 0; left_out < full().size(); ++left_out) {
    AclEntries entries = full();
    const bool needed =
        entries[left_out].tag != PosixAceTag::kUser && entries[left_out].tag != PosixAceTag::kGroup;
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(left_out));
    EXPECT_EQ(PosixAcl::of(entries).has_value(), !needed) << left_out;
  }
  for (const AclEntry& one : full()) {
    AclEntries twice = full();
    twice.push_back(one);
    EXPECT_FALSE(PosixAcl::of(twice)) << static_cast<uint32_t>(one.tag);
  }
  AclEntries wrong = full();
  wrong[1].permissions = 8;
  EXPECT_FALSE(PosixAcl::of(wrong));
  wrong = full();
  wrong[1].tag = static_cast<PosixAceTag>(7);
  EXPECT_FALSE(PosixAcl::of(wrong));
}

TEST(PosixAcl, HasAnOrder) {
  const PosixAcl acl = *PosixAcl::of(full());
  std::vector<PosixAceTag> tags;
  for (const AclEntry& one : acl.entries()) tags.push_back(one.tag);
  EXPECT_EQ(tags, (std::vector{PosixAceTag::kUserObject, PosixAceTag::kUser, PosixAceTag::kGroupObject,
                               PosixAceTag::kGroup, PosixAceTag::kMask, PosixAceTag::kOther}));
}

TEST(PosixAcl, IsTheModeOrMoreThanThat) {
  EXPECT_EQ(PosixAcl::of_mode(0754).mode_bits(), 0754u);
  EXPECT_FALSE(PosixAcl::of_mode(0754).extended());
  EXPECT_TRUE(PosixAcl::of_mode(0754).beyond_mode().empty());
  const PosixAcl acl = *PosixAcl::of(full());
  EXPECT_TRUE(acl.extended());
  EXPECT_EQ(acl.mode_bits(), 0664u) << "the mask is the group's bits";
  const PosixAcl again = *PosixAcl::of_stored(acl.beyond_mode(), acl.mode_bits());
  EXPECT_EQ(again, acl);
  EXPECT_EQ(PosixAcl::of_stored(acl.beyond_mode(), 0700)->mode_bits(), 0700u) << "chmod changes the mask";
}

TEST(PosixAcl, IsInheritedAsFarAsTheModeAllows) {
  const PosixAcl acl = PosixAcl::of(full())->inherited(0540);
  EXPECT_EQ(acl.mode_bits(), 0440u);
  const AclEntries entries = acl.entries();
  EXPECT_EQ(entries[1].permissions, 7u) << "named ones are left to the mask";
  EXPECT_EQ(entries[2].permissions, 4u);
  EXPECT_EQ(PosixAcl::of_mode(0777).inherited(0640).mode_bits(), 0640u);
}

// --- who may do what, against the words of the standard ---

// Of an inode with this ACL.
class OneAcl final : public AclReader {
 public:
  explicit OneAcl(const PosixAcl& acl) : acl_(acl) {}
  std::expected<PosixAcl, Status> access_acl(const Inode&) override { return acl_; }

 private:
  const PosixAcl& acl_;
};

Inode inode_with(const PosixAcl& acl) {
  Inode made;
  made.id = 1;
  made.mode = acl.mode_bits();
  made.uid = kOwnerId;
  made.gid = kGroupId;
  made.flags = acl.extended() ? kInodeHasAccessAcl : 0;
  return made;
}

Status access(const PosixAcl& acl, const Credentials& who, uint32_t wanted) {
  OneAcl reader(acl);
  return check_access(Requester{who, reader}, inode_with(acl), wanted);
}

TEST(PosixAcl, DecidesAboutWhoIsNamed) {
  const PosixAcl acl = *PosixAcl::of(full());
  EXPECT_EQ(access(acl, {.uid = 7, .gid = 7, .groups = {}}, kMayRead | kMayWrite), Status::kOk);
  EXPECT_EQ(access(acl, {.uid = 7, .gid = 7, .groups = {}}, kMayExecute), Status::kAccess) << "the mask";
  EXPECT_EQ(access(acl, {.uid = 9, .gid = 8, .groups = {}}, kMayWrite), Status::kOk);
  EXPECT_EQ(access(acl, {.uid = 9, .gid = 8, .groups = {}}, kMayRead), Status::kAccess)
      << "a member is not one of the others";
  EXPECT_EQ(access(acl, {.uid = 9, .gid = 8, .groups = {kGroupId}}, kMayRead), Status::kOk);
  EXPECT_EQ(access(acl, {.uid = 9, .gid = 8, .groups = {kGroupId}}, kMayRead | kMayWrite), Status::kAccess)
      << "no group grants both";
  EXPECT_EQ(access(acl, {.uid = 99, .gid = 99, .groups = {}}, kMayRead), Status::kOk);
  EXPECT_EQ(access(acl, {.uid = kOwnerId, .gid = 8, .groups = {}}, kMayRead | kMayWrite), Status::kOk);
  EXPECT_EQ(access(acl, {.uid = 0, .gid = 0, .groups = {}}, kMayRead | kMayWrite), Status::kOk);
  EXPECT_EQ(access(acl, {.uid = 0, .gid = 0, .groups = {}}, kMayExecute), Status::kAccess);
}

TEST(PosixAcl, WithAMaskThatGrantsNothingTheModeDecides) {
  AclEntries entries = full();
  for (AclEntry& one : entries) {
    if (one.tag == PosixAceTag::kMask) one.permissions = 0;
  }
  const PosixAcl acl = *PosixAcl::of(entries);
  const bool others_read = (acl.mode_bits() & kMayRead << 0) != 0;
  EXPECT_EQ(access(acl, {.uid = 7, .gid = 7, .groups = {}}, kMayRead),
            others_read ? Status::kOk : Status::kAccess);
  EXPECT_EQ(access(acl, {.uid = 7, .gid = kGroupId, .groups = {}}, kMayRead), Status::kAccess);
}

TEST(PosixAcl, OneThatCannotBeReadGrantsNothing) {
  class Failing final : public AclReader {
   public:
    std::expected<PosixAcl, Status> access_acl(const Inode&) override { return std::unexpected(Status::kIo); }
  } failing;
  Inode inode = inode_with(*PosixAcl::of(full()));
  inode.mode = 0777;
  const Requester stranger{{.uid = 7, .gid = 7, .groups = {}}, failing};
  EXPECT_EQ(check_access(stranger, inode, kMayRead), Status::kIo);
  EXPECT_EQ(access_mask(stranger, inode, kAccessRead).error(), Status::kIo);
  const Requester owner{{.uid = kOwnerId, .gid = 7, .groups = {}}, failing};
  EXPECT_EQ(check_access(owner, inode, kMayRead), Status::kOk) << "his entry is the mode's";
}

// Draft 17 of POSIX 1003.1e, 23.1.5, but for a mask of nothing, as sets, with nothing in common with what is tested.
bool model_grants(const AclEntries& acl, const Credentials& who, uint32_t wanted) {
  std::map<uint32_t, uint32_t> users, groups;
  uint32_t owner = 0, owning_group = 0, other = 0, mask = 7;
  bool mode_decides = false;
  for (const AclEntry& one : acl) {
    if (one.tag == PosixAceTag::kUserObject) owner = one.permissions;
    if (one.tag == PosixAceTag::kGroupObject) owning_group = one.permissions;
    if (one.tag == PosixAceTag::kOther) other = one.permissions;
    if (one.tag == PosixAceTag::kMask) mask = one.permissions;
    if (one.tag == PosixAceTag::kMask) mode_decides = one.permissions == 0;
    if (one.tag == PosixAceTag::kUser) users[one.id] = one.permissions;
    if (one.tag == PosixAceTag::kGroup) groups[one.id] = one.permissions;
  }
  if (who.uid == kOwnerId) return (~owner & wanted) == 0;
  // As Linux has it.
  if (mode_decides) users.clear(), groups.clear();
  if (users.contains(who.uid)) return (~(users[who.uid] & mask) & wanted) == 0;
  std::set<uint32_t> member_of(who.groups.begin(), who.groups.end());
  member_of.insert(who.gid);
  std::vector<uint32_t> matching;
  if (member_of.contains(kGroupId)) matching.push_back(owning_group);
  for (const auto& [group, permissions] : groups) {
    if (member_of.contains(group)) matching.push_back(permissions);
  }
  if (matching.empty()) return (~other & wanted) == 0;
  return std::ranges::any_of(matching, [&](uint32_t one) { return (~(one & mask) & wanted) == 0; });
}

AclEntries random_acl(Random& random) {
  const auto bits = [&] { return random.next_u32() % 8; };
  AclEntries entries = {entry(PosixAceTag::kUserObject, bits()), entry(PosixAceTag::kGroupObject, bits()),
                        entry(PosixAceTag::kOther, bits())};
  std::set<std::pair<PosixAceTag, uint32_t>> there;
  for (uint32_t count = random.next_u32() % 6; count > 0; --count) {
    const PosixAceTag tag = random.next_u32() % 2 ? PosixAceTag::kUser : PosixAceTag::kGroup;
    const uint32_t id = 8 + random.next_u32() % 16;
    if (there.emplace(tag, id).second) entries.push_back(entry(tag, bits(), id));
  }
  if (!there.empty() || random.next_u32() % 2) entries.push_back(entry(PosixAceTag::kMask, bits()));
  std::ranges::shuffle(entries, std::minstd_rand(random.next_u32()));
  return entries;
}

TEST(PosixAcl, DecidesAsTheModelDoes) {
  SeededRandom random(17);
  int granted = 0;
  constexpr int kCases = 200'000;
  for (int i = 0; i < kCases; ++i) {
    const AclEntries entries = random_acl(random);
    const PosixAcl acl = *PosixAcl::of(entries);
    Credentials who{.uid = 8 + random.next_u32() % 16, .gid = 8 + random.next_u32() % 16, .groups = {}};
    for (uint32_t count = random.next_u32() % 4; count > 0; --count)
      who.groups.push_back(8 + random.next_u32() % 16);
    const uint32_t wanted = random.next_u32() % 8;
    const bool expected = model_grants(entries, who, wanted);
    ASSERT_EQ(access(acl, who, wanted) == Status::kOk, expected) << "case " << i;
    granted += expected;
  }
  EXPECT_GT(granted, kCases / 10);
  EXPECT_LT(granted, kCases * 9 / 10);
}

TEST(PosixAcl, TheAnswerToAccessIsThatOfTheChecks) {
  SeededRandom random(18);
  for (int i = 0; i < 20'000; ++i) {
    const PosixAcl acl = *PosixAcl::of(random_acl(random));
    OneAcl reader(acl);
    Inode inode = inode_with(acl);
    if (random.next_u32() % 2) inode.type = FileType::kDirectory;
    const Requester who{
        {.uid = 8 + random.next_u32() % 16, .gid = 8 + random.next_u32() % 16, .groups = {12}}, reader};
    const auto may = [&](uint32_t wanted) { return check_access(who, inode, wanted) == Status::kOk; };
    const uint32_t granted = access_mask(who, inode, 0x1ff)->granted;
    ASSERT_EQ((granted & kAccessRead) != 0, may(kMayRead));
    ASSERT_EQ((granted & kAccessModify) != 0,
              may(inode.is_directory() ? kMayWrite | kMayExecute : kMayWrite));
    ASSERT_EQ((granted & (kAccessExecute | kAccessLookup)) != 0, may(kMayExecute));
    ASSERT_EQ((granted & kAccessXattrWrite) != 0, check_xattrs(who, inode, kMayWrite) == Status::kOk);
  }
}

TEST(PosixAcl, IsTheOwnersToSetAndTakesSetgidFromWhoIsNoMember) {
  OneAcl reader(PosixAcl::of_mode(0));
  Inode inode = inode_with(PosixAcl::of_mode(0755));
  inode.mode |= 02000;
  const Requester owner{{.uid = kOwnerId, .gid = 99, .groups = {}}, reader};
  const Requester member{{.uid = kOwnerId, .gid = kGroupId, .groups = {}}, reader};
  const Requester root{{.uid = 0, .gid = 0, .groups = {}}, reader};
  const Requester stranger{{.uid = 11, .gid = kGroupId, .groups = {}}, reader};
  EXPECT_EQ(check_attributes(owner, inode, {.access_acl = true}).mode, 0755u);
  EXPECT_EQ(check_attributes(owner, inode, {.default_acl = true}).mode, std::nullopt);
  EXPECT_EQ(check_attributes(member, inode, {.access_acl = true}).mode, std::nullopt);
  EXPECT_EQ(check_attributes(root, inode, {.access_acl = true}).mode, std::nullopt);
  EXPECT_EQ(check_attributes(stranger, inode, {.access_acl = true}).status, Status::kPerm);
  EXPECT_EQ(check_attributes(stranger, inode, {.default_acl = true}).status, Status::kPerm);
}

}  // namespace
}  // namespace pnfsrdma::mds
