// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>

#include "cli/stat/mount_reader.h"

namespace pnfsrdma::cli {
namespace {

// In snapshots, the snapshot's number is above that of the living inode (docs/protocol.md).
constexpr unsigned kLiveInodeBits = 40;

Moment moment_of(const statx_timestamp& time) {
  return {time.tv_sec, time.tv_nsec};
}

// As a mount of ours has it from the server: with the list of the names, a moment ago.
constexpr int kAsListed = AT_STATX_SYNC_AS_STAT;
constexpr int kNow = AT_STATX_FORCE_SYNC;

Result<Status> look(int directory, const std::string& name, bool is_ours, int how = kAsListed) {
  struct statx found{};
  if (statx(directory, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | how, STATX_BASIC_STATS,
            &found) != 0)
    return fail(errno, "stat");
  Status status{.mode = found.stx_mode,
                .user = found.stx_uid,
                .group = found.stx_gid,
                .links = found.stx_nlink,
                .size = found.stx_size,
                .device = makedev(found.stx_dev_major, found.stx_dev_minor),
                .special = makedev(found.stx_rdev_major, found.stx_rdev_minor),
                .inode = found.stx_ino,
                .accessed = moment_of(found.stx_atime),
                .modified = moment_of(found.stx_mtime),
                .changed = moment_of(found.stx_ctime)};
  if (is_ours) {
    status.snapshot = status.inode >> kLiveInodeBits;
    status.inode &= (uint64_t{1} << kLiveInodeBits) - 1;
  }
  return status;
}

// Whether a mount of ours has the path, and not another one on top of it.
bool is_on_our_mount(const std::string& path, uint64_t device) {
  const auto mounted = MountReader::find(path);
  if (!mounted) return false;
  struct stat root{};
  return lstat(mounted->front().path.c_str(), &root) == 0 && root.st_dev == device;
}

// The kernel takes no longer path at once.
constexpr size_t kPathBytesMax = PATH_MAX - 1;

// How much of a path is opened at once: up to a slash.
size_t step_of(std::string_view path) {
  return path.size() <= kPathBytesMax ? path.size() : path.find_last_of('/', kPathBytesMax);
}

Result<FileDescriptor> open_below(int directory, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  FileDescriptor opened(static_cast<int>(syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how)));
  if (!opened) return fail(errno, "open");
  return opened;
}

}  // namespace

std::string Entry::path() const {
  return fmt::format("/proc/self/fd/{}/{}", directory, name);
}

std::string Held::path() const {
  return fmt::format("/proc/self/fd/{}", file.get());
}

Result<Tree> Tree::open(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  FileDescriptor root(static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  if (!root) return fail(errno, path);
  TRY_ASSIGN(const Status status, look(root.get(), ".", false));
  Tree tree(std::move(root), is_on_our_mount(path, status.device));
  TRY_ASSIGN(tree.root_status_, look(tree.root_.get(), ".", tree.is_ours_, kNow));
  return tree;
}

Result<FileDescriptor> Tree::directory(const std::string& relative) const {
  FileDescriptor reached;
  std::string_view left = relative.empty() ? std::string_view(".") : relative;
  while (!left.empty()) {
    const size_t step = step_of(left);
    const int from = reached ? reached.get() : root_.get();
    TRY_ASSIGN(reached, open_below(from, std::string(left.substr(0, step))));
    left.remove_prefix(std::min(step, left.size() - 1) + 1);
  }
  return reached;
}

Result<Entry> Tree::find(int directory, const std::string& name) const {
  TRY_ASSIGN(const Status status, look(directory, name, is_ours_));
  return Entry{directory, name, status};
}

Result<Entry> Tree::find_now(int directory, const std::string& name) const {
  TRY_ASSIGN(Status status, look(directory, name, is_ours_, kNow));
  // The kernel asks the mount then, but only an open makes that ask the server (close-to-open).
  constexpr int kHow = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  if (status.is_file() && FileDescriptor(openat(directory, name.c_str(), kHow))) {
    TRY_ASSIGN(status, look(directory, name, is_ours_, kNow));
  }
  return Entry{directory, name, status};
}

Result<Held> Tree::hold(const Entry& entry) const {
  FileDescriptor file(openat(entry.directory, entry.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return fail(errno, "open");
  TRY_ASSIGN(const Status status, look(file.get(), "", is_ours_, AT_EMPTY_PATH));
  if (!status.is_same_as(entry.status) || status.type() != entry.status.type())
    return fail(ESTALE, "it was replaced meanwhile");
  return Held{std::move(file), status};
}

Result<Held> Tree::hold(int file) const {
  FileDescriptor held(::open(fmt::format("/proc/self/fd/{}", file).c_str(), O_PATH | O_CLOEXEC));
  if (!held) return fail(errno, "open");
  TRY_ASSIGN(const Status status, look(held.get(), "", is_ours_, AT_EMPTY_PATH));
  return Held{std::move(held), status};
}

Result<std::vector<std::string>> Tree::names(int directory) {
  FileDescriptor own(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return fail(errno, "open");
  const Owned<DIR, closedir> stream(fdopendir(own.get()));
  if (stream == nullptr) return fail(errno, "list");
  (void)own.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const next = readdir(stream.get());
    if (next == nullptr) break;
    const std::string_view name = next->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return fail(errno, "list");
  std::ranges::sort(names);
  return names;
}

Result<Status> status_of(const std::string& path) {
  TRY_ASSIGN(const Status status, look(AT_FDCWD, path, false, kNow));
  // Where the name is, is where it is looked for; a link's end may be elsewhere.
  const size_t slash = path.find_last_of('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, std::max(slash, size_t{1}));
  const bool is_ours = is_on_our_mount(status.type() == S_IFLNK ? directory : path, status.device);
  return is_ours ? look(AT_FDCWD, path, true) : status;
}

std::string joined(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + '/' + name;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace pnfsrdma::cli
