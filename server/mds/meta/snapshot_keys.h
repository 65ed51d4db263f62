// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/mds/meta/inode.h"

// The numbers of snapshots and of the inodes in them, and the keys that such inodes have: those of the live ones, with
// the snapshot's number in the inode's.
namespace pnfsrdma::mds {

// 1, 2, 3 … in the order they were taken, never used again. 0: none. What is born (an extent) or dies (memory that no
// file has any more) carries the newest number of that moment: snapshot n has what was born before n and died at n or
// later.
using SnapshotNumber = uint32_t;

// An inode of a snapshot has the number of the live one, with the snapshot's number above it.
inline constexpr unsigned kLiveInodeBits = 40;
inline constexpr InodeId kLiveInodesEnd = InodeId{1} << kLiveInodeBits;
// The directory that lists the snapshots, seen from the directory that is the rest of the number.
inline constexpr SnapshotNumber kSnapshotList = (SnapshotNumber{1} << (64 - kLiveInodeBits)) - 1;
inline constexpr SnapshotNumber kSnapshotsEnd = kSnapshotList;

constexpr SnapshotNumber snapshot_of(InodeId inode) {
  return static_cast<SnapshotNumber>(inode >> kLiveInodeBits);
}
constexpr InodeId live_inode(InodeId inode) {
  return inode & (kLiveInodesEnd - 1);
}
constexpr InodeId inode_in(SnapshotNumber snapshot, InodeId live) {
  return (InodeId{snapshot} << kLiveInodeBits) | live;
}

// Whose row the key names, or all keys with that prefix: 0 for the live ones and for what belongs to no inode.
SnapshotNumber snapshot_of_key(std::string_view key);
// The key as the snapshot's own copy of the metadata has it.
std::string key_without_snapshot(std::string_view key);
// The reverse; of keys that belong to an inode.
std::string key_in_snapshot(SnapshotNumber snapshot, std::string_view key);

}  // namespace pnfsrdma::mds
