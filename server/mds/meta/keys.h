// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/mds/meta/inode.h"
#include "server/mds/meta/quota.h"

// The grammar of the keys: a letter, then numbers of 8 bytes, big-endian, so that byte order is the order of
// numbers. The values are XDR behind a version number (values.h).
//
//   M <name>                     one of a kind: "format", "boot", "next-inode", "next-block" (of brick 1,
//                                "next-block.<number>" of others), "next-brick", "next-zone",
//                                "lease" (the longest that clients may know), "snapshot" (the
//                                last one's number), "next-tree", "quota-counted" (quotas.h), "quota-grace",
//                                "verifier.<number>" of brick <number>, "verifier-changes"
//   I <inode>                    Inode
//   D <directory> <name>         NameEntry
//   C <directory> <cookie>       the name, for READDIR: same entry, in the order of cookies
//   E <inode> <end offset>       where the bytes before <end offset> are. By their end, because then the
//   first key behind an
//                                offset is the extent that holds it: no backward search
//   T <inode>                    tail dirty (extents.h)
//   O <inode>                    orphan
//   B <brick>                    BrickRecord (brick_records.h)
//   R <kind, 1 byte> <key>       state records (records.h)
//   X <inode>                    StoredXattrs
//   S <end address>              StoredShare: memory that several extents name, by its end as extents are
//   N <number>                   StoredSnapshot
//   Z <end address>              StoredDead: memory that only snapshots have, by its end as extents are
//   Q <kind> <id>                StoredQuota: what a user, a group or a tree has
//   L <kind> <id>                StoredQuotaLimits: what it may have
//   Y <tree>                     StoredTree
//   A <inode> <which>            StoredAcl; 1: what the mode does not say of the access ACL, 2: the default ACL
namespace pnfsrdma::mds {

inline constexpr char kMetaTag = 'M';
inline constexpr char kInodeTag = 'I';
inline constexpr char kNameTag = 'D';
inline constexpr char kCookieTag = 'C';
inline constexpr char kExtentTag = 'E';
inline constexpr char kTailTag = 'T';
inline constexpr char kOrphanTag = 'O';
inline constexpr char kBrickTag = 'B';
inline constexpr char kRecordTag = 'R';
inline constexpr char kXattrTag = 'X';
inline constexpr char kShareTag = 'S';
inline constexpr char kAclTag = 'A';
inline constexpr char kSnapshotTag = 'N';
inline constexpr char kDeadTag = 'Z';
inline constexpr char kQuotaTag = 'Q';
inline constexpr char kQuotaLimitsTag = 'L';
inline constexpr char kTreeTag = 'Y';

// The second number of an ACL's key.
enum class AclKind : uint64_t { kAccess = 1, kDefault = 2 };

// A tag alone: the prefix of everything under it.
std::string tag_prefix(char tag);

std::string meta_key(std::string_view name);
// Of 9 or 17 bytes; those of 9 need no allocation.
std::string number_key(char tag, uint64_t number);
std::string number_key(char tag, uint64_t first, uint64_t second);
std::string acl_key(InodeId inode, AclKind kind);
std::string quota_key(char tag, const QuotaId& id);
std::string name_key(InodeId directory, std::string_view name);
std::string record_key(uint8_t kind, std::string_view key);

// The numbers of a key made by number_key(), if it has that tag and length.
struct KeyNumbers {
  uint64_t first = 0;
  uint64_t second = 0;
};
std::optional<uint64_t> number_of_key(char tag, std::string_view key);
std::optional<KeyNumbers> numbers_of_key(char tag, std::string_view key);
// Directory and name of a name_key().
struct KeyName {
  InodeId directory = kNoInode;
  std::string_view name;
};
std::optional<KeyName> name_of_key(std::string_view key);

}  // namespace pnfsrdma::mds
