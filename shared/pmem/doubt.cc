// SPDX-License-Identifier: Apache-2.0
#include "shared/pmem/doubt.h"

#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "shared/base/result.h"

namespace pnfsrdma::pmem {
namespace {

namespace fs = std::filesystem;

// Of volumes over volumes over loop devices …
constexpr int kLayersMax = 16;
// Block devices that are memory of the kernel: brd, zram, null_blk, scsi_debug.
constexpr std::array<std::string_view, 4> kRamDisks = {"/virtual/block/ram", "/virtual/block/zram",
                                                       "/virtual/block/nullb", "/pseudo_"};
// What firmware says of an NVDIMM that will not keep its content, or has not at the last loss of power.
constexpr std::array<std::string_view, 5> kFailures = {"not_armed", "save_fail", "restore_fail", "flush_fail",
                                                       "map_fail"};

std::string attribute(const fs::path& path) {
  return Sysfs::attribute(path.string()).value_or("");
}

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

// A bus of NVDIMMs and its region, as folders of sysfs; empty where `place` is on none.
struct Region {
  fs::path bus, region;
};
Region region_of(const fs::path& place) {
  fs::path path;
  for (const fs::path& part : place) {
    const fs::path above = path;
    path /= part;
    if (begins(part.string(), "region") && begins(above.filename().string(), "ndbus")) return {above, path};
  }
  return {};
}

std::string doubt_of_nvdimm(const fs::path& bus, const std::string& name) {
  const auto flags = Sysfs::attribute((bus / name / "nfit/flags").string());
  if (!flags) return fmt::format("the state of {} (nfit/flags) cannot be read", name);
  for (const std::string_view failure : kFailures) {
    if (flags->find(failure) != std::string::npos)
      return fmt::format("the firmware says {} of {}", failure, name);
  }
  return {};
}

// Each NVDIMM of the region. One without is a RAM disk of the firmware (a "virtual disk" of the NFIT).
std::string doubt_of_nvdimms(const fs::path& bus, const fs::path& region) {
  const std::string text = attribute(region / "mappings");
  unsigned count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  if (count == 0) return fmt::format("no NVDIMM is behind {}", region.filename().string());
  for (unsigned i = 0; i < count; ++i) {
    const std::string mapping = attribute(region / fmt::format("mapping{}", i));  // "nmem0,0,1073741824,0"
    if (auto doubt = doubt_of_nvdimm(bus, mapping.substr(0, mapping.find(','))); !doubt.empty()) return doubt;
  }
  return {};
}

// Who flushes: the CPU its cache lines, or the device at an fsync.
enum class Flush { kCpu, kDevice };

std::string doubt_of_region(const fs::path& place, Flush flush) {
  const auto [bus, region] = region_of(place);
  if (bus.empty()) return "memory that is not on the NVDIMM bus";
  const std::string provider = attribute(bus / "provider");
  if (provider == "e820")
    return "memory set aside by memmap= or without a description by the firmware (e820)";
  if (attribute(region / "devtype") != "nd_pmem") return "a volatile region of the NVDIMM bus";
  if (provider == "ACPI.NFIT") return doubt_of_nvdimms(bus, region);
  // "cpu_cache" or "memory_controller": the kernel knows that what has left the CPU, or the memory's
  // controller, is kept.
  if (provider == "CXL")
    return attribute(region / "persistence_domain").empty() ? "CXL memory of unknown persistence" : "";
  // Its lines lie in the page cache of the virtual machine's host, which hears of the device's flush only.
  if (provider == "virtio-pmem")
    return flush == Flush::kDevice ? "" : "memory that the virtual machine's host flushes (virtio-pmem)";
  return fmt::format("memory of an unknown provider (\"{}\")", provider);
}

std::string doubt_of_block_place(const fs::path& place, const Sysfs& sysfs, int layers);

std::string doubt_of_loop_file(const std::string& file, const Sysfs& sysfs, int layers) {
  struct stat status{};
  struct statfs filesystem{};
  if (::stat(file.c_str(), &status) != 0 || ::statfs(file.c_str(), &filesystem) != 0) {
    return fmt::format(
        "a loop device whose file ({}) the brick cannot examine ({}): let its user and unit reach the file, "
        "or "
        "make the file itself the pool",
        file, Error::from_errno("stat").to_string());
  }
  if (!S_ISBLK(status.st_mode) && lives_in_memory(filesystem.f_type))
    return fmt::format("a loop device over memory ({})", file);
  const dev_t below = S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev;
  return doubt_of_block_place(sysfs.block_device(below), sysfs, layers);
}

// What a volume (device mapper, RAID, bcache) is made of.
std::string doubt_of_slaves(const fs::path& disk, const Sysfs& sysfs, int layers) {
  std::error_code error;
  for (const auto& slave : fs::directory_iterator(disk / "slaves", error)) {
    const fs::path below = fs::canonical(slave.path(), error);
    if (error)
      return fmt::format("a volume whose part {} cannot be examined", slave.path().filename().string());
    if (auto doubt = doubt_of_block_place(below, sysfs, layers); !doubt.empty()) return doubt;
  }
  return {};
}

std::string doubt_of_block_place(const fs::path& place, const Sysfs& sysfs, int layers) {
  if (place.empty()) return {};
  if (layers == 0) return "too many stacked devices";
  const auto is_ram = [&](std::string_view name) { return place.string().find(name) != std::string::npos; };
  if (std::any_of(kRamDisks.begin(), kRamDisks.end(), is_ram))
    return fmt::format("a RAM disk ({})", place.filename().string());
  if (!region_of(place).bus.empty()) return doubt_of_region(place, Flush::kDevice);
  const fs::path disk = Sysfs::attribute((place / "partition").string()) ? place.parent_path() : place;
  if (begins(disk.filename().string(), "loop"))
    return doubt_of_loop_file(attribute(disk / "loop/backing_file"), sysfs, layers - 1);
  return doubt_of_slaves(disk, sysfs, layers - 1);
}

}  // namespace

bool lives_in_memory(int64_t filesystem) {
  return filesystem == TMPFS_MAGIC || filesystem == RAMFS_MAGIC || filesystem == HUGETLBFS_MAGIC;
}

std::string doubt_of_memory(const std::string& place) {
  return doubt_of_region(place, Flush::kCpu);
}

std::string doubt_of_block_device(dev_t device, const Sysfs& sysfs) {
  return doubt_of_block_place(sysfs.block_device(device), sysfs, kLayersMax);
}

}  // namespace pnfsrdma::pmem
