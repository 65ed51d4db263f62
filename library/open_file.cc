// SPDX-License-Identifier: Apache-2.0
#include "library/open_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

namespace pnfsrdma::library {
namespace {

constexpr int kNoMeaning = O_CLOEXEC | O_DIRECT | O_NOCTTY | O_LARGEFILE | O_NONBLOCK;
constexpr int kKnown = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_SYNC | O_DSYNC | kNoMeaning;

}  // namespace

Result<> OpenFile::check_flags(std::string_view path, int flags) {
  if ((flags & ~kKnown) != 0)
    return fail(EINVAL, fmt::format("{}: flags 0{:o} are not supported", path, flags & ~kKnown));
  if ((flags & O_ACCMODE) == O_ACCMODE) return fail(EINVAL, "neither O_RDONLY, O_WRONLY nor O_RDWR");
  if ((flags & O_ACCMODE) == O_RDONLY && (flags & O_TRUNC) != 0)
    return fail(EINVAL, "O_TRUNC of a file that is only read");
  return {};
}

Result<> OpenFile::check_word(const WordChange& change) const {
  if (change.offset % sizeof(uint64_t) != 0) return fail(EINVAL, "the word is not aligned to eight bytes");
  if (!writable_ || appends_) return fail(EBADF, "the file is not open for writing at any place");
  if (change.kind != WordChange::Kind::kStore && !readable_)
    return fail(EBADF, "the file is not open for reading");
  return {};
}

OpenFile::OpenFile(Connection& connection, int flags)
    : ConnectionUse(connection),
      readable_((flags & O_ACCMODE) != O_WRONLY),
      writable_((flags & O_ACCMODE) != O_RDONLY),
      appends_((flags & O_APPEND) != 0),
      durable_((flags & (O_DSYNC | O_SYNC)) != 0) {}

}  // namespace pnfsrdma::library
