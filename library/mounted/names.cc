// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>

namespace pnfsrdma::library::mounted {
namespace {

// Of a resolution that a rename has crossed (EAGAIN).
constexpr int kTriesMax = 100;

// "/d/file" is the directory's, too.
std::string_view relative(std::string_view path) {
  return path.substr(std::min(path.find_first_not_of('/'), path.size()));
}

// Of the calling thread's errno.
std::unexpected<Error> failed_at(std::string_view path) {
  if (errno == EXDEV)
    return fail(EXDEV,
                fmt::format("{}: the path, or a link on it, leads out of the directory connected to", path));
  return std::unexpected(Error::from_errno(std::string(path)));
}

}  // namespace

Result<FileDescriptor> Names::open(std::string_view path, int flags, mode_t mode) const {
  const std::string_view below = relative(path);
  const std::string name(below.empty() && !path.empty() ? "." : below);
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? mode & 07777 : 0;
  how.resolve = RESOLVE_BENEATH;
  for (int tries = 1;; ++tries) {
    FileDescriptor opened(
        static_cast<int>(::syscall(SYS_openat2, root_.get(), name.c_str(), &how, sizeof how)));
    if (opened) return opened;
    if ((errno != EAGAIN && errno != EINTR) || tries == kTriesMax) return failed_at(path);
  }
}

Result<struct stat> Names::status(std::string_view path) const {
  TRY_ASSIGN(const FileDescriptor found, open(path, O_PATH));
  struct stat status{};
  if (::fstat(found.get(), &status) != 0) return failed_at(path);
  return status;
}

Result<Names::Place> Names::place_of(std::string_view path) const {
  if (path.empty()) return fail(ENOENT, "the path is empty");
  const size_t last = path.find_last_not_of('/');
  if (last == std::string_view::npos) return fail(EISDIR, "the path names the directory connected to");
  const size_t begin = path.rfind('/', last) + 1;  // npos + 1 is 0
  TRY_ASSIGN(FileDescriptor directory, open(begin == 0 ? "." : path.substr(0, begin), O_PATH | O_DIRECTORY));
  return Place{std::move(directory), std::string(path.substr(begin))};
}

Result<> Names::remove(std::string_view path, int flags) const {
  TRY_ASSIGN(const Place place, place_of(path));
  if (::unlinkat(place.directory.get(), place.name.c_str(), flags) != 0) return failed_at(path);
  return {};
}

Result<> Names::unlink(std::string_view path) const {
  return remove(path, 0);
}

Result<> Names::remove_directory(std::string_view path) const {
  return remove(path, AT_REMOVEDIR);
}

Result<> Names::make_directory(std::string_view path, mode_t mode) const {
  const auto place = place_of(path);
  // It is there: the directory connected to.
  if (!place && place.error().number() == EISDIR) return fail(EEXIST, std::string(path));
  if (!place) return std::unexpected(place.error());
  if (::mkdirat(place->directory.get(), place->name.c_str(), mode) != 0) return failed_at(path);
  return {};
}

Result<> Names::rename(std::string_view from, std::string_view to, Connection::Renaming how) const {
  TRY_ASSIGN(const Place source, place_of(from));
  TRY_ASSIGN(const Place target, place_of(to));
  unsigned flags = 0;
  if (how == Connection::Renaming::kNoReplace) flags = RENAME_NOREPLACE;
  if (how == Connection::Renaming::kExchange) flags = RENAME_EXCHANGE;
  if (::renameat2(source.directory.get(), source.name.c_str(), target.directory.get(), target.name.c_str(),
                  flags) != 0)
    return failed_at(from);
  return {};
}

}  // namespace pnfsrdma::library::mounted
