// SPDX-License-Identifier: Apache-2.0
#include "shared/client/file_attributes.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace pnfsrdma::client {
namespace {

nfs4::Attributes sample() {
  nfs4::Attributes attributes;
  attributes.type = nfs4::FileType::kRegular;
  attributes.change = 77;
  attributes.file_id = 42;
  attributes.size = 1000;
  attributes.mode = 04755;
  attributes.link_count = 2;
  attributes.owner = nfs4::Text("1000");
  attributes.owner_group = nfs4::Text("1001");
  attributes.space_used = 4097;
  attributes.time_modify = nfs4::Time{12, 34};
  return attributes;
}

TEST(FileAttributes, BecomeAStat) {
  const auto file = to_file_attributes(sample());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->change, 77u);
  EXPECT_EQ(file->status.st_ino, 42u);
  EXPECT_EQ(file->status.st_mode, S_IFREG | 04755u);
  EXPECT_EQ(file->status.st_nlink, 2u);
  EXPECT_EQ(file->status.st_uid, 1000u);
  EXPECT_EQ(file->status.st_gid, 1001u);
  EXPECT_EQ(file->status.st_size, 1000);
  EXPECT_EQ(file->status.st_blocks, 9);
  EXPECT_EQ(file->status.st_mtim.tv_sec, 12);
  EXPECT_EQ(file->status.st_mtim.tv_nsec, 34);
}

TEST(FileAttributes, DevicesKeepTheirNumbers) {
  nfs4::Attributes attributes = sample();
  attributes.type = nfs4::FileType::kCharacter;
  attributes.raw_device = nfs4::SpecialData{1, 3};
  const auto file = to_file_attributes(attributes);
  ASSERT_TRUE(file);
  EXPECT_TRUE(S_ISCHR(file->status.st_mode));
  EXPECT_EQ(file->status.st_rdev, makedev(1, 3));
}

TEST(FileAttributes, TellWhoHasAnAcl) {
  nfs4::Attributes attributes = sample();
  EXPECT_EQ(to_file_attributes(attributes)->presence, 0u);
  attributes.raw_device = nfs4::SpecialData{0xfffffff2, 3};
  EXPECT_EQ(to_file_attributes(attributes)->presence, nfs4::kHasDefaultAcl);
  EXPECT_EQ(to_file_attributes(attributes)->status.st_rdev, 0u);
  attributes.type = nfs4::FileType::kBlock;
  EXPECT_EQ(to_file_attributes(attributes)->presence, nfs4::kHasAccessAcl | nfs4::kHasDefaultAcl)
      << "nobody knows";
}

TEST(FileAttributes, TellWhoHasExtendedAttributes) {
  nfs4::Attributes attributes = sample();
  EXPECT_FALSE(to_file_attributes(attributes)->lacks_xattrs()) << "nobody knows";
  attributes.raw_device = nfs4::SpecialData{nfs4::kHasAccessAcl, 0};
  EXPECT_FALSE(to_file_attributes(attributes)->lacks_xattrs());
  attributes.raw_device = nfs4::SpecialData{nfs4::kTellsXattrs | nfs4::kHasAccessAcl, 0};
  EXPECT_TRUE(to_file_attributes(attributes)->lacks_xattrs());
  attributes.raw_device = nfs4::SpecialData{nfs4::kTellsXattrs | nfs4::kHasXattrs, 0};
  EXPECT_FALSE(to_file_attributes(attributes)->lacks_xattrs());
}

TEST(FileAttributes, WithoutTypeChangeOrIdTheyAreOfNoUse) {
  for (const auto take :
       {+[](nfs4::Attributes& a) { a.type.reset(); }, +[](nfs4::Attributes& a) { a.change.reset(); },
        +[](nfs4::Attributes& a) { a.file_id.reset(); }}) {
    nfs4::Attributes attributes = sample();
    take(attributes);
    EXPECT_FALSE(to_file_attributes(attributes));
  }
}

TEST(FileAttributes, ATimeThatIsNoneIsNotShown) {
  nfs4::Attributes attributes = sample();
  attributes.time_modify = nfs4::Time{5, 2'000'000'000};
  EXPECT_EQ(to_file_attributes(attributes)->status.st_mtim.tv_nsec, 0);
}

TEST(Owner, NumbersAndNames) {
  EXPECT_EQ(user_number("0"), 0u);
  EXPECT_EQ(user_number("4294967294"), 4294967294u);
  EXPECT_EQ(user_number("root@example.org"), 0u);
  EXPECT_EQ(user_number("007"), 65534u);
  EXPECT_EQ(user_number(""), 65534u);
  EXPECT_EQ(group_number("no-such-group@x"), 65534u);
}

}  // namespace
}  // namespace pnfsrdma::client
