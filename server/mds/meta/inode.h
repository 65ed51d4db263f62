// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "shared/base/clock.h"
#include "shared/xdr/decoder.h"
#include "shared/xdr/encoder.h"
#include "shared/xdr/types.h"

namespace pnfsrdma::mds {

// Never reused, not even for a file of another boot. 0 names no inode.
using InodeId = uint64_t;
inline constexpr InodeId kNoInode = 0;
inline constexpr InodeId kRootInode = 1;

// nfs_ftype4 (RFC 8881, 3.3.2); the values are on media.
enum class FileType : uint32_t {
  kRegular = 1,
  kDirectory = 2,
  kBlockDevice = 3,
  kCharacterDevice = 4,
  kSymlink = 5,
  kSocket = 6,
  kFifo = 7,
};
constexpr bool xdr_known(FileType value) {
  return value >= FileType::kRegular && value <= FileType::kFifo;
}

using ExclusiveVerifier = xdr::FixedOpaque<8>;

inline constexpr size_t kSymlinkBytesMax = 4096;
inline constexpr size_t kNameBytesMax = 255;
// A value of an extended attribute, bytes: what Linux takes.
inline constexpr size_t kXattrBytesMax = 65536;
// Names and values of an inode's extended attributes together: they are one row, written whole.
inline constexpr size_t kXattrRowBytesMax = 2 * kXattrBytesMax;
inline constexpr uint32_t kModeMask = 07777;
inline constexpr uint32_t kLinksMax = 1U << 30;
// Bytes; the largest file: an offset must fit the signed 64 bits of clients.
inline constexpr uint64_t kFileSizeMax = (uint64_t{1} << 63) - 1;

// Bits of Inode::flags.
inline constexpr uint32_t kInodeHasVerifier = 1;  // made by an exclusive create: exclusive_verifier is valid
inline constexpr uint32_t kInodeOrphan =
    2;  // no name left, kept because somebody uses it or its space is not freed
inline constexpr uint32_t kInodeHasXattrs = 4;  // there is a row of extended attributes (xattrs.h)
inline constexpr uint32_t kInodeShares = 8;  // some of its memory may be another file's, too (shared_runs.h)
// There is a row of an ACL (posix_acl.h); else the access ACL is the mode, and there is no default ACL.
inline constexpr uint32_t kInodeHasAccessAcl = 16;
inline constexpr uint32_t kInodeHasDefaultAcl = 32;

// A directory and what is below it, counted together (quota_trees.h). 0: none; a number is never given again. As the
// last field of a row it is there only where it is not 0: rows of before have none.
struct TreeNumber {
  uint64_t value = 0;
  auto operator<=>(const TreeNumber&) const = default;
};
inline void xdr_encode(xdr::Encoder& encoder, const TreeNumber& tree) {
  if (tree.value != 0) encoder.put_u64(tree.value);
}
[[nodiscard]] inline bool xdr_decode(xdr::Decoder& decoder, TreeNumber& tree) {
  return decoder.remaining() == 0 || decoder.get_u64(tree.value);
}

// One file, directory or special file, as stored (XDR behind a version number). A value: change it by
// Namespace only.
struct Inode {
  InodeId id = kNoInode;
  uint64_t generation = 0;  // the boot that made it: id and generation make a file handle
  FileType type = FileType::kRegular;
  uint32_t mode = 0;  // permission bits, setuid, setgid, sticky: kModeMask
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t nlink = 0;
  uint64_t size = 0;        // bytes; of a directory: its number of entries
  uint64_t space_used = 0;  // bytes of allocated grains
  uint64_t change = 0;      // boot count in the high 24 bits: never repeats, whatever a crash lost
  WallTime atime;
  WallTime mtime;
  WallTime ctime;
  WallTime created;
  xdr::String<kSymlinkBytesMax> symlink_target;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  InodeId parent = kNoInode;  // directories only; the root is its own
  uint64_t next_cookie = 0;   // directories only: of the next entry
  ExclusiveVerifier exclusive_verifier{};
  uint32_t flags = 0;
  TreeNumber tree;  // of those that there are no more, too: see QuotaTrees::tree_of()

  bool is_directory() const { return type == FileType::kDirectory; }
  bool is_regular() const { return type == FileType::kRegular; }
  bool operator==(const Inode&) const = default;
};

// A snapshot: never changes; a newer state is a new object.
using InodePointer = std::shared_ptr<const Inode>;

}  // namespace pnfsrdma::mds
