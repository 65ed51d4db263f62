// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/snapshot_keys.h"

#include <algorithm>

#include "server/mds/meta/keys.h"

namespace pnfsrdma::mds {
namespace {

// The inode's number is behind the tag, and the snapshot's is its first bytes.
constexpr size_t kFirstByte = 1;
constexpr size_t kSnapshotBytes = sizeof(InodeId) - kLiveInodeBits / 8;
static_assert(kLiveInodeBits % 8 == 0 && kSnapshotBytes == 3);

bool belongs_to_inode(std::string_view key) {
  if (key.size() < kFirstByte + sizeof(InodeId)) return false;
  switch (key[0]) {
    case kInodeTag:
    case kNameTag:
    case kCookieTag:
    case kExtentTag:
    case kXattrTag:
    case kAclTag:
    case kTailTag:
    case kOrphanTag:
      return true;
    default:
      return false;
  }
}

}  // namespace

SnapshotNumber snapshot_of_key(std::string_view key) {
  if (!belongs_to_inode(key)) return 0;
  SnapshotNumber number = 0;
  for (size_t i = 0; i < kSnapshotBytes; ++i)
    number = (number << 8) | static_cast<uint8_t>(key[kFirstByte + i]);
  return number;
}

std::string key_without_snapshot(std::string_view key) {
  return key_in_snapshot(0, key);
}

std::string key_in_snapshot(SnapshotNumber snapshot, std::string_view key) {
  std::string changed(key);
  for (size_t i = 0; i < kSnapshotBytes; ++i)
    changed[kFirstByte + i] = static_cast<char>(snapshot >> (8 * (kSnapshotBytes - 1 - i)));
  return changed;
}

}  // namespace pnfsrdma::mds
