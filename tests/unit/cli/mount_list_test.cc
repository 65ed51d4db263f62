// SPDX-License-Identifier: Apache-2.0
#include "cli/stat/mount_list.h"

#include <gtest/gtest.h>

namespace pnfsrdma::cli {
namespace {

constexpr const char* kMountinfo =
    "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
    "90 22 0:50 / /mnt/pmem rw,nosuid,nodev,relatime shared:7 - fuse.pnfsrdma mds:/[iwarp+process] "
    "rw,user_id=0\n"
    "91 22 0:51 / /mnt/with\\040space rw,relatime - fuse.pnfsrdma [::1]:/a[verbs+power] rw\n"
    "92 22 0:52 / /mnt/other rw shared:8 master:2 - fuse.sshfs host:/ rw\n"
    "garbage\n";

TEST(MountList, OnlyOursAreListedWithTheirNamesUnescaped) {
  const std::vector<Mounted> wanted = {{"mds:/[iwarp+process]", "/mnt/pmem"},
                                       {"[::1]:/a[verbs+power]", "/mnt/with space"}};
  EXPECT_EQ(mounts_in(kMountinfo), wanted);
  EXPECT_TRUE(mounts_in("").empty());
}

TEST(MountList, APathBelongsToTheMountItIsIn) {
  const std::vector<Mounted> mounts = {{"a", "/mnt"}, {"b", "/mnt/deep"}, {"c", "/mnt/deep"}};
  EXPECT_EQ(mount_of(mounts, "/mnt/file")->source, "a");
  EXPECT_EQ(mount_of(mounts, "/mnt/deep/file")->source, "c");  // mounted over b
  EXPECT_EQ(mount_of(mounts, "/mnt/deeper")->source, "a");
  EXPECT_EQ(mount_of(mounts, "/mntx"), nullptr);
  EXPECT_EQ(mount_of({}, "/"), nullptr);
}

}  // namespace
}  // namespace pnfsrdma::cli
