// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/first_pool.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "server/brickd/format_command.h"
#include "shared/base/log.h"
#include "shared/base/owned.h"

namespace pnfsrdma::brick {
namespace {

Result<bool> exists(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT) return false;
  return std::unexpected(Error::from_errno("stat " + path));
}

Result<> check_space(const std::string& folder, const std::string& wanted) {
  TRY_ASSIGN(const uint64_t size, parse_size(wanted));
  struct statvfs status{};
  if (statvfs(folder.c_str(), &status) != 0) return std::unexpected(Error::from_errno("statvfs " + folder));
  const uint64_t free = uint64_t{status.f_bavail} * status.f_frsize;
  if (size <= free / 2) return {};
  return fail(ENOSPC,
              fmt::format("a pool of {} MiB in {} would take more than half of the {} MiB that are free: "
                          "make pool.size smaller, or make the pool yourself with --format",
                          size >> 20, folder, free >> 20));
}

Result<> sync_folder(const std::string& folder) {
  const FileDescriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || fsync(fd.get()) != 0) return std::unexpected(Error::from_errno("fsync " + folder));
  return {};
}

}  // namespace

Result<> make_first_pool(const Config& config, Random& random) {
  if (!config.pool.create) return {};
  TRY_ASSIGN(const bool there, exists(config.pool.path));
  if (there) return {};
  const std::string parent = std::filesystem::path(config.pool.path).parent_path();
  const std::string folder = parent.empty() ? "." : parent;
  TRY(check_space(folder, config.pool.size));
  Config unfinished = config;
  unfinished.pool.path += ".new";
  TRY(format_pool(unfinished, /*force=*/true, random));
  if (rename(unfinished.pool.path.c_str(), config.pool.path.c_str()) != 0)
    return std::unexpected(Error::from_errno("rename " + unfinished.pool.path));
  TRY(sync_folder(folder));
  log_info("brick", "pool-made path={} size={}", config.pool.path, config.pool.size);
  return {};
}

}  // namespace pnfsrdma::brick
