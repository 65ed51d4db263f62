// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/acl_xattr.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pnfsrdma::fuse_client {
namespace {

using nfs4::PosixAceTag;

// What setfacl -m u:1000:rw,g:500:r makes of a file of mode 0640 (getfattr -e hex).
constexpr std::string_view kFromKernel =
    "02000000"
    "01000600ffffffff"
    "02000600e8030000"
    "04000400ffffffff"
    "08000400f4010000"
    "10000600ffffffff"
    "20000000ffffffff";

nfs4::PosixAcl entries() {
  return {{PosixAceTag::kUserObject, 6, ""},  {PosixAceTag::kUser, 6, "1000"},
          {PosixAceTag::kGroupObject, 4, ""}, {PosixAceTag::kGroup, 4, "500"},
          {PosixAceTag::kMask, 6, ""},        {PosixAceTag::kOther, 0, ""}};
}

TEST(AclXattr, IsAsTheKernelHasIt) {
  EXPECT_EQ(to_hex(acl_to_xattr(entries())), kFromKernel);
  const auto read = acl_from_xattr(acl_to_xattr(entries()));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 6u);
  for (size_t i = 0; i < read->size(); ++i) {
    EXPECT_EQ((*read)[i].tag, entries()[i].tag);
    EXPECT_EQ((*read)[i].permissions, entries()[i].permissions);
    EXPECT_EQ((*read)[i].who, entries()[i].who);
  }
}

TEST(AclXattr, IsSortedForTheKernel) {
  nfs4::PosixAcl reversed = entries();
  std::ranges::reverse(reversed);
  EXPECT_EQ(to_hex(acl_to_xattr(reversed)), kFromKernel);
  const nfs4::PosixAcl two = {{PosixAceTag::kUser, 1, "10"}, {PosixAceTag::kUser, 2, "9"}};
  EXPECT_EQ(to_hex(acl_to_xattr(two)),
            "02000000"
            "0200020009000000"
            "020001000a000000")
      << "by number, not by text";
}

TEST(AclXattr, WhatIsNoneIsRefused) {
  Bytes value = acl_to_xattr(entries());
  EXPECT_FALSE(acl_from_xattr({}));
  EXPECT_FALSE(acl_from_xattr(ByteSpan(value).first(value.size() - 1)));
  EXPECT_TRUE(acl_from_xattr(ByteSpan(value).first(4))) << "of no entries";
  Bytes version = value;
  version[0] = std::byte{1};
  EXPECT_FALSE(acl_from_xattr(version));
  Bytes tag = value;
  tag[4] = std::byte{3};
  EXPECT_FALSE(acl_from_xattr(tag));
}

TEST(AclXattr, NamesAndModes) {
  EXPECT_EQ(acl_kind("system.posix_acl_access"), AclKind::kAccess);
  EXPECT_EQ(acl_kind(acl_name(AclKind::kDefault)), AclKind::kDefault);
  EXPECT_EQ(acl_kind("user.posix_acl_access"), std::nullopt);
  EXPECT_FALSE(is_extended(acl_of_mode(0754)));
  EXPECT_TRUE(is_extended(entries()));
  EXPECT_EQ(to_hex(acl_to_xattr(acl_of_mode(0754))),
            "02000000"
            "01000700ffffffff"
            "04000500ffffffff"
            "20000400ffffffff");
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
