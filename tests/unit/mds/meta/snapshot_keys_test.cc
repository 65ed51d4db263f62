// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/snapshot_keys.h"

#include <gtest/gtest.h>

#include "server/mds/meta/keys.h"

namespace pnfsrdma::mds {
namespace {

constexpr SnapshotNumber kNumber = 0x123456;
constexpr InodeId kLive = 0x9876543210;
static_assert(snapshot_of(inode_in(kNumber, kLive)) == kNumber &&
              live_inode(inode_in(kNumber, kLive)) == kLive);

TEST(SnapshotKeys, RowsOfAnInodeOfASnapshotAreThoseOfTheLiveOneInItsCopy) {
  for (const char tag :
       {kInodeTag, kCookieTag, kExtentTag, kXattrTag, kAclTag, kTailTag, kOrphanTag, kNameTag}) {
    const std::string inside = number_key(tag, inode_in(kNumber, kLive), 7);
    const std::string live = number_key(tag, kLive, 7);
    EXPECT_EQ(snapshot_of_key(inside), kNumber) << tag;
    EXPECT_EQ(snapshot_of_key(live), 0U) << tag;
    EXPECT_EQ(key_without_snapshot(inside), live);
    EXPECT_EQ(key_in_snapshot(kNumber, live), inside);
    // The prefix of a scan.
    EXPECT_EQ(snapshot_of_key(number_key(tag, inode_in(kNumber, kLive))), kNumber) << tag;
  }
  EXPECT_EQ(snapshot_of_key(name_key(inode_in(kSnapshotList, kRootInode), "name")), kSnapshotList);
}

TEST(SnapshotKeys, WhatBelongsToNoInodeIsLive) {
  for (const char tag : {kBrickTag, kShareTag, kSnapshotTag, kDeadTag, kMetaTag, kRecordTag})
    EXPECT_EQ(snapshot_of_key(number_key(tag, UINT64_MAX, 7)), 0U) << tag;
  EXPECT_EQ(snapshot_of_key(""), 0U);
  EXPECT_EQ(snapshot_of_key(tag_prefix(kInodeTag)), 0U);
  EXPECT_EQ(snapshot_of_key("I\xff\xff\xff\xff\xff\xff\xff"), 0U) << "no whole number";
}

}  // namespace
}  // namespace pnfsrdma::mds
