// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/mounted_directory.h"

#include <fcntl.h>

#include <cerrno>
#include <string>
#include <utility>

namespace pnfsrdma::library::mounted {

Result<std::unique_ptr<MountedDirectory>> MountedDirectory::open(Connection& connection, const Names& names,
                                                                 std::string_view path) {
  TRY_ASSIGN(FileDescriptor opened, names.open(path, O_RDONLY | O_DIRECTORY));
  Stream stream(::fdopendir(opened.get()));
  if (!stream) return std::unexpected(Error::from_errno(std::string(path)));
  (void)opened.release();  // it is the stream's
  return std::unique_ptr<MountedDirectory>(new MountedDirectory(connection, std::move(stream)));
}

Result<bool> MountedDirectory::next(struct dirent& entry) {
  for (;;) {
    errno = 0;
    const struct dirent* const found = ::readdir(stream_.get());
    if (found == nullptr && errno != 0) return std::unexpected(Error::from_errno("readdir"));
    if (found == nullptr) return false;
    if (is_special(found->d_name)) continue;
    TRY(fill(entry, found->d_ino, found->d_type, found->d_name));
    return true;
  }
}

}  // namespace pnfsrdma::library::mounted
