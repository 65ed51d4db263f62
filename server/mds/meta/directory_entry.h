// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/mds/meta/inode.h"

namespace pnfsrdma::mds {

// Of the first entry of a directory: 0, 1 and 2 are reserved (RFC 8881, 18.23.3).
inline constexpr uint64_t kFirstCookie = 3;

// Where a name leads, as stored under directory and name.
struct NameEntry {
  InodeId inode = kNoInode;
  FileType type = FileType::kRegular;
  uint64_t cookie = 0;
  bool operator==(const NameEntry&) const = default;
};

// The same as READDIR sees it, stored under directory and cookie.
struct DirectoryEntry {
  uint64_t cookie = 0;
  std::string name;
  InodeId inode = kNoInode;
  FileType type = FileType::kRegular;
  bool operator==(const DirectoryEntry&) const = default;
};

// A part of a directory in the order of cookies. `end`: nothing follows.
struct DirectoryPage {
  std::vector<DirectoryEntry> entries;
  bool end = false;
};

}  // namespace pnfsrdma::mds
