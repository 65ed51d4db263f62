// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::fuse_client {

// Which names a directory does not have: those that the server said are not there, or, where it is known
// completely, all but those it has; and some that it has, whose files are known (InodeTable::find). All of it was
// so at one value of the directory's change attribute; at another one nothing is known. A value of its Inode,
// under that one's mutex.
class DirectoryNames {
 public:
  // More than these are forgotten again: the absent ones one after the other, those of a complete directory at
  // once.
  static constexpr size_t kAbsentMax = 1024;
  static constexpr size_t kPresentMax = 16'384;
  static constexpr size_t kFoundMax = kPresentMax;

  // The server has said NOENT, when the change attribute was `change` or, a moment before, still was.
  void absent(std::string_view name, uint64_t change);
  // The name is of a file that the kernel has been told, when the change attribute was `change` or a moment later.
  void found(std::string_view name, uint64_t change);
  // It has no other names than these (empty: a new directory).
  void complete(const std::unordered_set<std::string>& names, uint64_t change);
  // An operation of this client. What was known stays known if nobody else has changed the directory in between.
  void added(std::string_view name, const nfs4::ChangeInfo& change);
  void removed(std::string_view name, const nfs4::ChangeInfo& change);
  void renamed(std::string_view from, std::string_view to, const nfs4::ChangeInfo& change);
  // These have each another file than before.
  void exchanged(const std::vector<std::string_view>& names, const nfs4::ChangeInfo& change);
  // An operation of ours whose outcome is not known, or was not what was expected.
  void forget();

  // True: when the change attribute was `change` there was no such name. Never of nfs4::kSnapshotListName.
  bool lacks(std::string_view name, uint64_t change) const;
  // True: the name was of the same file as when it was found last.
  bool has_found(std::string_view name, uint64_t change) const;

  // Bytes, about.
  size_t memory() const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  using Names = std::unordered_set<std::string, Hash, std::equal_to<>>;

  static void insert(Names& names, std::string_view name, size_t most);
  static void erase(Names& names, std::string_view name);
  // False: it did not follow what is known, so nothing is known any more but what comes from here on.
  bool follow(const nfs4::ChangeInfo& change);
  void has(std::string_view name);
  void has_not(std::string_view name);

  uint64_t change_ = 0;
  bool complete_ = false;
  Names absent_;
  Names found_;
  Names present_;  // while complete_
};

}  // namespace pnfsrdma::fuse_client
