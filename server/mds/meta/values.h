// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/mds/meta/directory_entry.h"
#include "server/mds/meta/inode.h"
#include "server/mds/meta/key_value.h"
#include "server/mds/meta/posix_acl.h"
#include "server/mds/meta/quota.h"
#include "server/mds/meta/snapshots.h"
#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/xdr/codec.h"

// The form of the stored values: a 32-bit version, then the type's XDR. A later form of a type gets the next
// version and a reader for each older one; a program that meets a version it does not know refuses it.
namespace pnfsrdma::mds {

inline constexpr uint32_t kValueVersion = 1;

// What the key does not say about a directory entry by cookie.
struct StoredCookie {
  xdr::String<kNameBytesMax> name;
  InodeId inode = kNoInode;
  FileType type = FileType::kRegular;
};

// What the key (inode, end offset) does not say about an extent.
struct StoredExtent {
  uint64_t logical = 0;
  uint64_t length = 0;
};

// Its second version, for what was born behind a snapshot.
inline constexpr uint32_t kBornVersion = 2;
struct StoredBornExtent {
  uint64_t logical = 0;
  uint64_t length = 0;
  SnapshotNumber born = 0;
};

// What the key (number) does not say about a Snapshot.
struct StoredSnapshot {
  xdr::String<kNameBytesMax> name;
  WallTime created;
  SnapshotState state = SnapshotState::kMaking;
};

// Its second version, for one that the schedule took or that is pinned: an older program starts when those are gone.
inline constexpr uint32_t kMarkedVersion = 2;
struct StoredMarkedSnapshot {
  StoredSnapshot snapshot;
  SnapshotClass schedule = SnapshotClass::kNone;
  bool pinned = false;
};

// What the key (died, end address) does not say about memory that only snapshots have.
struct StoredDead {
  uint64_t length = 0;
  SnapshotNumber born = 0;
  SnapshotNumber died = 0;
};

// What the key (end address) does not say about a SharedRun.
struct StoredShare {
  uint64_t length = 0;
  uint64_t names = 0;
};

// One of an inode's extended attributes, and all of them, in byte order of their names.
struct StoredXattr {
  xdr::String<kNameBytesMax> name;
  xdr::Opaque<kXattrBytesMax> value;
};
struct StoredXattrs {
  xdr::List<StoredXattr, kXattrBytesMax> all;
};

// Of an access ACL only what the mode does not say: the owning group's entry and the named ones. Of a default ACL all.
struct StoredAcl {
  xdr::List<AclEntry, kAclEntriesMax> entries;
};

// What the key (kind, number) does not say about a user, a group or a tree.
struct StoredQuota {
  QuotaUsage usage;
};
struct StoredQuotaLimits {
  QuotaLimits limits;
};

// The default limits of users, or of groups, under a meta key.
struct StoredQuotaDefault {
  QuotaDefault limits;
};

// What the key (number) does not say about a QuotaTree.
struct StoredTree {
  InodeId root = kNoInode;
  xdr::String<kSymlinkBytesMax> path;
  bool complete = false;
};

// A counter or a version under a meta key.
struct StoredNumber {
  uint64_t number = 0;
};

template <typename T>
void put_value(Batch& batch, std::string_view key, const T& value, uint32_t version = kValueVersion) {
  Bytes bytes;
  xdr::Encoder encoder(bytes);
  {
    const xdr::Encoder::Staging staging(encoder);
    encoder.put_u32(version);
    xdr::encode(encoder, value);
  }
  batch.put(key, as_text(bytes));
}

// Of a stored value; 0 for what is too short to be one.
inline uint32_t value_version(std::string_view bytes) {
  xdr::Decoder decoder(as_bytes(bytes));
  uint32_t version = 0;
  return decoder.get_u32(version) ? version : 0;
}

// `T` is the form of version `known`. `what` names the value in the error: EUCLEAN, the store is damaged or
// of another program version.
template <typename T>
Result<T> read_value(std::string_view bytes, std::string_view what, uint32_t known = kValueVersion) {
  xdr::Decoder decoder(as_bytes(bytes));
  uint32_t version = 0;
  T value{};
  const bool whole =
      decoder.get_u32(version) && version == known && xdr::decode(decoder, value) && decoder.remaining() == 0;
  if (whole) return value;
  return fail(EUCLEAN, "the metadata store has " + std::string(what) + " of version " +
                           std::to_string(version) + " that cannot be read (" +
                           xdr::to_string(decoder.error()) + ")");
}

}  // namespace pnfsrdma::mds
