// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/set_attributes.h"

#include <gtest/gtest.h>

#include "fuse-client/fuse_header.h"

namespace pnfsrdma::fuse_client {
namespace {

TEST(SetAttributes, OnlyWhatIsAsked) {
  struct stat wanted{};
  wanted.st_mode = S_IFREG | 0640;
  wanted.st_uid = 7;
  wanted.st_size = 99;
  wanted.st_mtim = {5, 6};
  const auto mode = to_set_attributes(wanted, FUSE_SET_ATTR_MODE);
  EXPECT_EQ(mode.mask(), nfs4::Bitmap::of(nfs4::Attribute::kMode));
  EXPECT_EQ(mode.mode, 0640u);
  const auto all = to_set_attributes(wanted, FUSE_SET_ATTR_UID | FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MTIME);
  EXPECT_EQ(*all.owner, "7");
  EXPECT_EQ(all.size, 99u);
  const auto* time = all.time_modify_set->get_if<nfs4::TimeHow::kClientTime>();
  ASSERT_NE(time, nullptr);
  EXPECT_EQ(*time, (nfs4::Time{5, 6}));
  const auto now = to_set_attributes(wanted, FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW);
  EXPECT_TRUE(now.time_modify_set->is<nfs4::TimeHow::kServerTime>());
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
