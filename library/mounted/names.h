// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <string_view>

#include "library/connection.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"

namespace pnfsrdma::library::mounted {

// Paths below a directory, as the kernel resolves them for the calling process; none leads out of it (EXDEV).
// Thread-safe.
class Names {
 public:
  explicit Names(FileDescriptor root) : root_(std::move(root)) {}

  // `flags`, `mode`: open(2)'s.
  Result<FileDescriptor> open(std::string_view path, int flags, mode_t mode = 0) const;
  Result<struct stat> status(std::string_view path) const;
  Result<> unlink(std::string_view path) const;
  Result<> remove_directory(std::string_view path) const;
  Result<> make_directory(std::string_view path, mode_t mode) const;
  Result<> rename(std::string_view from, std::string_view to,
                  Connection::Renaming how = Connection::Renaming::kReplace) const;

 private:
  // The directory of a path's last component, and that, with the slashes behind it.
  struct Place {
    FileDescriptor directory;
    std::string name;
  };
  // EISDIR: the path is that of the directory itself.
  Result<Place> place_of(std::string_view path) const;
  Result<> remove(std::string_view path, int flags) const;

  const FileDescriptor root_;
};

}  // namespace pnfsrdma::library::mounted
