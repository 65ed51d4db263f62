// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/format_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "server/brickd/pool.h"
#include "shared/base/owned.h"

namespace pnfsrdma::brick {
namespace {

constexpr uint64_t kAllocateStep = uint64_t{256} << 20;

// For who looks on: in a journal a line that is written over is none.
void show_progress(const std::string& path, uint64_t done, uint64_t size) {
  if (isatty(STDOUT_FILENO) == 0) return;
  fmt::print("\rallocating {}: {} of {} MiB{}", path, done >> 20, size >> 20, done < size ? "" : "\n");
  std::fflush(stdout);
}

// Every block of the file is there before the first byte is mapped: a hole that cannot be filled later would
// be a SIGBUS.
Result<> preallocate(int fd, const std::string& path, uint64_t size) {
  for (uint64_t at = 0; at < size;) {
    const uint64_t step = std::min(kAllocateStep, size - at);
    if (const int error = posix_fallocate(fd, static_cast<off_t>(at), static_cast<off_t>(step))) {
      if (error == EINTR) continue;
      return fail(error, fmt::format("allocating {} MiB for {} (free some space or make pool.size smaller)",
                                     size >> 20, path));
    }
    at += step;
    show_progress(path, at, size);
  }
  if (fsync(fd) != 0) return std::unexpected(Error::from_errno("fsync " + path));
  return {};
}

// An earlier pool's superblock must not be seen again, and every byte shall read as zero: so from nothing.
Result<> make_file(int fd, const std::string& path, const std::string& wanted, uint64_t old_size,
                   bool force) {
  if (old_size > 0 && !force) {
    return fail(EEXIST, path + " exists and is not empty; --force destroys it and all data in it");
  }
  uint64_t size = old_size;
  if (!wanted.empty()) {
    TRY_ASSIGN(size, parse_size(wanted));
  }
  if (size == 0)
    return fail(EINVAL, "pool.size is missing: set the size of " + path + ", for example \"4G\"");
  size -= size % kBlockSize;
  if (format::blocks_that_fit(size, kBlockSize) == 0) {
    return fail(EINVAL, fmt::format("pool.size {} is too small: a pool takes at least 4M", wanted));
  }
  if (ftruncate(fd, 0) != 0) return std::unexpected(Error::from_errno("truncate " + path));
  return preallocate(fd, path, size);
}

}  // namespace

Result<bool> prepare_file(const std::string& path, const std::string& size, bool force) {
  const FileDescriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return std::unexpected(Error::from_errno("open " + path));
  struct stat status{};
  if (fstat(fd.get(), &status) != 0) return std::unexpected(Error::from_errno("stat " + path));
  if (!S_ISREG(status.st_mode)) return false;
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(EWOULDBLOCK, "lock " + path + ": a pnfsrdma-brickd has this pool open; stop it first");
  }
  TRY(make_file(fd.get(), path, size, static_cast<uint64_t>(status.st_size), force));
  return true;
}

pmem::FileFlush file_flush_of(const Config& config) {
  return config.pool.durability == "process" ? pmem::FileFlush::kPageCache : pmem::FileFlush::kSync;
}

Result<> format_pool(const Config& config, bool force, Random& random) {
  TRY_ASSIGN(const bool fresh, prepare_file(config.pool.path, config.pool.size, force));
  TRY_ASSIGN(const auto mapping, pmem::Mapping::open(config.pool.path));
  const auto persistence = mapping->make_persistence(file_flush_of(config));
  const Pool::FormatOptions options{.block_size = kBlockSize, .force = force, .known_zero = fresh};
  if (auto result = Pool::format(mapping->bytes(), *persistence, options, random); !result) {
    return std::unexpected(result.error().in(config.pool.path));
  }
  fmt::print("formatted {}: {} blocks of 2 MiB, kind {}, durability {}\n", config.pool.path,
             format::blocks_that_fit(mapping->bytes().size(), kBlockSize), to_string(mapping->medium().kind),
             to_string(persistence->durability()));
  std::fflush(stdout);
  return {};
}

}  // namespace pnfsrdma::brick
