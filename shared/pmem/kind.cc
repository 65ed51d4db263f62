// SPDX-License-Identifier: Apache-2.0
#include "shared/pmem/kind.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <climits>
#include <cstdlib>
#include <memory>
#include <string>

namespace pnfsrdma::pmem {
namespace {

// Where sysfs says the device sits, e.g. "/sys/devices/…/ndbus0/region0/dax0.0/dax/dax0.0"; empty when it
// does not.
std::string sysfs_place(const char* type, dev_t device) {
  const std::string link = fmt::format("/sys/dev/{}/{}:{}", type, major(device), minor(device));
  const std::unique_ptr<char, decltype(&std::free)> place(realpath(link.c_str(), nullptr), &std::free);
  return place ? std::string(place.get()) : std::string();
}

Result<Medium> detect_device(const struct stat& status) {
  const std::string place = sysfs_place("char", status.st_rdev);
  if (place.find("/dax") == std::string::npos) {
    return fail(
        EINVAL,
        "the pool's character device is not device DAX (create one with: ndctl create-namespace -m devdax)");
  }
  // Device DAX also exists over ordinary DRAM (hmem, "soft reserved"); only what the NVDIMM bus carries is
  // persistent.
  return Medium{Kind::kDeviceDax, place.find("/ndbus") != std::string::npos};
}

bool lives_in_ram(int64_t filesystem) {
  return filesystem == TMPFS_MAGIC || filesystem == RAMFS_MAGIC || filesystem == HUGETLBFS_MAGIC;
}

// brd and zram: block devices that are memory.
bool block_device_is_ram(dev_t device) {
  const std::string place = sysfs_place("block", device);
  return place.find("/virtual/block/ram") != std::string::npos ||
         place.find("/virtual/block/zram") != std::string::npos;
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
  if (lives_in_ram(filesystem.f_type)) return Medium{Kind::kTmpfs, false};
  return Medium{is_dax_file(fd) ? Kind::kFsDax : Kind::kFile, !block_device_is_ram(status.st_dev)};
}

}  // namespace pnfsrdma::pmem
