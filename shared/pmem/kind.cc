// SPDX-License-Identifier: Apache-2.0
#include "shared/pmem/kind.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <string>

#include "shared/pmem/doubt.h"

namespace pnfsrdma::pmem {
namespace {

Medium medium(Kind kind, std::string doubt) {
  const bool persistent = doubt.empty();
  return {kind, persistent, std::move(doubt)};
}

Result<Medium> detect_device(const struct stat& status) {
  const std::string place = Sysfs().character_device(status.st_rdev);
  if (place.find("/dax") == std::string::npos) {
    return fail(
        EINVAL,
        "the pool's character device is not device DAX (create one with: ndctl create-namespace -m devdax)");
  }
  // Device DAX also exists over ordinary DRAM (hmem, "soft reserved").
  return medium(Kind::kDeviceDax, doubt_of_memory(place));
}

bool is_dax_file(int fd) {
  struct statx status{};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &status) != 0) return false;
  return (status.stx_attributes & STATX_ATTR_DAX) != 0;
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kMemory:
      return "memory";
    case Kind::kTmpfs:
      return "tmpfs";
    case Kind::kFile:
      return "file";
    case Kind::kFsDax:
      return "fsdax";
    case Kind::kDeviceDax:
      return "devdax";
  }
  return "unknown";
}

Result<Medium> detect_medium(int fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0) return std::unexpected(Error::from_errno("fstat of the pool"));
  if (S_ISCHR(status.st_mode)) return detect_device(status);
  if (!S_ISREG(status.st_mode))
    return fail(EINVAL, "the pool is neither a regular file nor a device DAX device");

  struct statfs filesystem{};
  if (fstatfs(fd, &filesystem) != 0) return std::unexpected(Error::from_errno("fstatfs of the pool"));
  if (lives_in_memory(filesystem.f_type)) return medium(Kind::kTmpfs, "a file system in memory");
  return medium(is_dax_file(fd) ? Kind::kFsDax : Kind::kFile, doubt_of_block_device(status.st_dev));
}

}  // namespace pnfsrdma::pmem
