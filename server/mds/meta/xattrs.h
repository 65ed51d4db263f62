// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/mds/meta/namespace.h"
#include "shared/base/bytes.h"

namespace pnfsrdma::mds {

// How a name that is there, or is not, is met (RFC 8276, 8.4.3).
enum class XattrMode {
  kEither,
  kCreate,   // kExist
  kReplace,  // kNoXattr
};

// The extended attributes of files and directories (RFC 8276), without the "user." of Linux. All of an inode are one
// row of the store, which goes with the inode; one that has none costs no read. A change is one atomic batch of the
// row and the inode, whose ctime and change move on. No permission is checked here. Control loop only. Errors besides
// those named are those of Namespace; names: kInval (empty, or with a NUL), kNameTooLong (over 255 bytes).
class Xattrs {
 public:
  explicit Xattrs(Namespace& names) : names_(names) {}

  // kNoXattr.
  Outcome<Bytes> get(const Inode& inode, std::string_view name) const;
  // In byte order.
  Outcome<std::vector<std::string>> list(const Inode& inode) const;
  // `extra` of this and the next goes into the same batch. kExist, kNoXattr; kNoSpc: they would be more than
  // kXattrRowBytesMax, or more names than listxattr(2) can list, or the store's medium is full.
  Outcome<DirectoryChange> set(const Inode& inode, std::string_view name, ByteSpan value, XattrMode mode,
                               const Batch& extra = {});
  // kNoXattr.
  Outcome<DirectoryChange> remove(const Inode& inode, std::string_view name, const Batch& extra = {});

 private:
  Namespace& names_;
};

}  // namespace pnfsrdma::mds
