// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/metadata_room.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "shared/base/log.h"
#include "shared/base/owned.h"

namespace pnfsrdma::mds {
namespace {

constexpr uint64_t kReserveMin = uint64_t{2} << 20;
constexpr uint64_t kReserveMax = uint64_t{128} << 20;
constexpr uint64_t kShareOfReserve = 8;  // of the file system
constexpr uint64_t kShareOfRelease = 2;  // of the reserve: with less left the file goes
constexpr uint64_t kShareOfStop = 4;     // likewise: with less left nothing at all is written
constexpr uint64_t kSmallestBuffer = uint64_t{1} << 20;

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

MetadataRoom::MetadataRoom(std::string path) : parent_(parent_of(path)), reserve_(path + ".reserve") {
  std::error_code ignored;
  reserved_ = std::filesystem::exists(reserve_, ignored);
  look();
}

bool MetadataRoom::measure() {
  struct statvfs now{};
  if (statvfs(parent_.c_str(), &now) != 0 || now.f_blocks == 0) return false;
  room_.total = uint64_t{now.f_blocks} * now.f_frsize;
  room_.free = uint64_t{now.f_bavail} * now.f_frsize;
  return true;
}

void MetadataRoom::look() {
  if (!measure()) return;
  reserve_bytes_ = std::clamp(room_.total / kShareOfReserve, kReserveMin, kReserveMax);
  if (reserved_ && room_.free < reserve_bytes_ / kShareOfRelease) release();
  if (!reserved_ && room_.free >= reserve_bytes_ * 5 / 2) make_reserve();
  // What tables in the making may take meanwhile, and the log.
  room_.stopped = room_.free < reserve_bytes_ / kShareOfStop;
  // What is left for new things: the reserve is none of it, whether its file exists or not.
  const uint64_t kept = reserved_ ? 0 : reserve_bytes_;
  const uint64_t left = room_.free - std::min(room_.free, kept);
  const bool was = room_.full;
  // Not to and fro at the border.
  room_.full = left < (was ? reserve_bytes_ * 5 / 4 : reserve_bytes_);
  room_.used_share = 1 - static_cast<double>(left - std::min(left, reserve_bytes_)) /
                             static_cast<double>(room_.total - std::min(room_.total / 2, 2 * reserve_bytes_));
  if (room_.full && !was) {
    log_error("meta",
              "metadata-disk-full directory={} free_bytes={} what=\"nothing new can be created until there "
              "is room\"",
              parent_, room_.free);
  }
  if (!room_.full && was)
    log_info("meta", "metadata-disk-has-room directory={} free_bytes={}", parent_, room_.free);
}

void MetadataRoom::release() {
  if (unlink(reserve_.c_str()) != 0) return;
  reserved_ = false;
  log_warning("meta", "metadata-reserve-released bytes={}", reserve_bytes_);
  measure();
}

void MetadataRoom::make_reserve() {
  const FileDescriptor file(open(reserve_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  if (!file || posix_fallocate(file.get(), 0, static_cast<off_t>(reserve_bytes_)) != 0) {
    unlink(reserve_.c_str());
    return;
  }
  reserved_ = true;
  measure();
}

uint64_t MetadataRoom::at_most(uint64_t bytes, uint64_t share_of_total) const {
  if (room_.total == 0) return bytes;
  return std::clamp(room_.total / share_of_total, kSmallestBuffer, bytes);
}

}  // namespace pnfsrdma::mds
