// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "library/connection.h"
#include "shared/base/result.h"

namespace pnfsrdma::library {

// What pnfsrdma_opendir() makes: the names in a directory one after the other, but "." and "..". Of what is made or
// removed meanwhile each may be among them or not. One thread at a time.
class Directory : private ConnectionUse {
 public:
  virtual ~Directory() = default;

  // False: that was all.
  virtual Result<bool> next(struct dirent& entry) = 0;

  using ConnectionUse::connection;

 protected:
  explicit Directory(Connection& connection) : ConnectionUse(connection) {}

  static bool is_special(std::string_view name) { return name == "." || name == ".."; }
  // `type`: DT_REG and so on, readdir(3).
  static Result<> fill(struct dirent& entry, uint64_t inode, unsigned char type, std::string_view name) {
    entry = {};
    if (name.size() >= sizeof entry.d_name) return fail(EOVERFLOW, "a name has more than 255 bytes");
    entry.d_ino = inode;
    entry.d_reclen = sizeof entry;
    entry.d_type = type;
    std::memcpy(entry.d_name, name.data(), name.size());
    return {};
  }
};

}  // namespace pnfsrdma::library
