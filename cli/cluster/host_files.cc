// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/host_files.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "shared/base/owned.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

std::unexpected<Failure> failed(const Error& error) {
  const bool denied = error.number() == EACCES || error.number() == EPERM;
  return refuse(denied ? ExitCode::kNotPermitted : ExitCode::kFailed, error.to_string(), {},
                denied ? "sudo pnfsrdma ..." : "");
}

std::string aside(const std::string& path) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{}.before-{:%Y%m%dT%H%M%S}Z", path, now);
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

Outcome<> sync_folder(const std::string& path) {
  const std::string folder = folder_of(path);
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::fsync(directory.get()) != 0) return failed(Error::from_errno("fsync " + folder));
  return {};
}

// Of a file with a copy: as it was. Else the named user's, if there is one.
Outcome<> give_to(const FileDescriptor& target, const HostFile& file) {
  struct stat before{};
  const bool replaced = file.keep_copy && ::stat(file.path.c_str(), &before) == 0;
  if (::fchmod(target.get(), replaced ? before.st_mode & 07777 : file.mode) != 0)
    return failed(Error::from_errno("chmod " + file.path));
  if (::geteuid() != 0) return {};
  const passwd* const user = file.user.empty() ? nullptr : ::getpwnam(file.user.c_str());
  const bool changed = replaced          ? ::fchown(target.get(), before.st_uid, before.st_gid) == 0
                       : user != nullptr ? ::fchown(target.get(), user->pw_uid, user->pw_gid) == 0
                                         : true;
  if (!changed) return failed(Error::from_errno("chown " + file.path));
  return {};
}

Outcome<> write_all(const FileDescriptor& target, const HostFile& file) {
  std::string_view rest = file.content;
  while (!rest.empty()) {
    const ssize_t done = ::write(target.get(), rest.data(), rest.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failed(Error::from_errno("write " + file.path));
    rest.remove_prefix(static_cast<size_t>(done));
  }
  if (::fsync(target.get()) != 0) return failed(Error::from_errno("fsync " + file.path));
  return {};
}

}  // namespace

Outcome<std::optional<std::string>> read_host_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!file) return failed(Error::from_errno("open " + path));
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t count = ::read(file.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(Error::from_errno("read " + path));
    if (count == 0) return text;
    text.append(part.data(), static_cast<size_t>(count));
  }
}

Outcome<std::string> write_host_file(const HostFile& file) {
  TRY_ASSIGN(const auto before, read_host_file(file.path));
  if (before == file.content) return std::string();
  std::error_code error;
  const bool made = std::filesystem::create_directories(folder_of(file.path), error);
  // Other users' daemons read what is theirs in it.
  if (made) ::chmod(folder_of(file.path).c_str(), 0755);
  if (error) return failed(Error(error.value(), "mkdir " + folder_of(file.path)));
  const std::string fresh = file.path + ".new";
  ::unlink(fresh.c_str());
  {
    // Nobody else may read it before it has its owner and mode.
    const FileDescriptor target(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!target) return failed(Error::from_errno("open " + fresh));
    TRY(give_to(target, file));
    TRY(write_all(target, file));
  }
  std::string copy;
  if (before && file.keep_copy) {
    copy = aside(file.path);
    if (::link(file.path.c_str(), copy.c_str()) != 0 && errno != EEXIST)
      return failed(Error::from_errno("link " + copy));
  }
  if (::rename(fresh.c_str(), file.path.c_str()) != 0) return failed(Error::from_errno("rename " + fresh));
  TRY(sync_folder(file.path));
  return copy;
}

Outcome<std::string> put_aside(const std::string& path) {
  const std::string to = aside(path);
  if (::rename(path.c_str(), to.c_str()) != 0) {
    if (errno == ENOENT) return std::string();
    return failed(Error::from_errno("rename " + path));
  }
  TRY(sync_folder(path));
  return to;
}

}  // namespace pnfsrdma::cli
