// SPDX-License-Identifier: Apache-2.0
#include "shared/client/file_attributes.h"

#include <grp.h>
#include <pwd.h>
#include <sys/sysmacros.h>

#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::client {
namespace {

using nfs4::Attribute;
using nfs4::FileType;

constexpr uint32_t kNobody = 65534;
constexpr blksize_t kPreferredIo = blksize_t{1} << 20;
constexpr uint32_t kMayHaveAcls = nfs4::kHasAccessAcl | nfs4::kHasDefaultAcl;
constexpr uint32_t kPresence = kMayHaveAcls | nfs4::kTellsXattrs | nfs4::kHasXattrs;

mode_t type_bits(FileType type) {
  switch (type) {
    case FileType::kRegular:
    case FileType::kNamedAttribute:
      return S_IFREG;
    case FileType::kDirectory:
    case FileType::kAttributeDirectory:
      return S_IFDIR;
    case FileType::kBlock:
      return S_IFBLK;
    case FileType::kCharacter:
      return S_IFCHR;
    case FileType::kLink:
      return S_IFLNK;
    case FileType::kSocket:
      return S_IFSOCK;
    case FileType::kFifo:
      return S_IFIFO;
  }
  return S_IFREG;
}

timespec to_timespec(const std::optional<nfs4::Time>& time) {
  if (!time) return {};
  return {.tv_sec = time->seconds, .tv_nsec = time->nanoseconds < 1'000'000'000 ? time->nanoseconds : 0};
}

// Digits only; "007" is a name, not a number (RFC 8881, 5.9: no leading zeros).
std::optional<uint32_t> as_number(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string before_domain(std::string_view owner) {
  return std::string(owner.substr(0, owner.find('@')));
}

}  // namespace

const nfs4::Bitmap& stat_attributes() {
  static const nfs4::Bitmap kWanted = nfs4::Bitmap::of(
      Attribute::kType, Attribute::kChange, Attribute::kSize, Attribute::kFileId, Attribute::kMode,
      Attribute::kLinkCount, Attribute::kOwner, Attribute::kOwnerGroup, Attribute::kRawDevice,
      Attribute::kSpaceUsed, Attribute::kTimeAccess, Attribute::kTimeMetadata, Attribute::kTimeModify);
  return kWanted;
}

const nfs4::Bitmap& open_attributes() {
  static const nfs4::Bitmap kWanted = stat_attributes() | nfs4::Bitmap::of(Attribute::kMdsThreshold);
  return kWanted;
}

const nfs4::Bitmap& birth_attributes() {
  static const nfs4::Bitmap kWanted = stat_attributes() | nfs4::Bitmap::of(Attribute::kTimeCreate);
  return kWanted;
}

std::optional<timespec> birth_of(const nfs4::Attributes& attributes) {
  if (!attributes.time_create) return std::nullopt;
  return to_timespec(attributes.time_create);
}

uint32_t user_number(std::string_view owner) {
  if (const auto number = as_number(owner)) return *number;
  std::array<char, 4096> memory;
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(before_domain(owner).c_str(), &entry, memory.data(), memory.size(), &found) == 0 &&
      found) {
    return found->pw_uid;
  }
  return kNobody;
}

uint32_t group_number(std::string_view owner_group) {
  if (const auto number = as_number(owner_group)) return *number;
  std::array<char, 16384> memory;
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(before_domain(owner_group).c_str(), &entry, memory.data(), memory.size(), &found) == 0 &&
      found) {
    return found->gr_gid;
  }
  return kNobody;
}

std::expected<FileAttributes, nfs4::Status> to_file_attributes(const nfs4::Attributes& attributes) {
  if (!attributes.type || !attributes.change || !attributes.file_id) {
    return std::unexpected(nfs4::Status::kServerFault);
  }
  FileAttributes file;
  file.change = *attributes.change;
  struct stat& status = file.status;
  status.st_ino = *attributes.file_id;
  status.st_mode = type_bits(*attributes.type) | (attributes.mode.value_or(0) & 07777);
  status.st_nlink = attributes.link_count.value_or(1);
  status.st_uid = attributes.owner ? user_number(*attributes.owner) : kNobody;
  status.st_gid = attributes.owner_group ? group_number(*attributes.owner_group) : kNobody;
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) {
    const auto device = attributes.raw_device.value_or(nfs4::SpecialData{});
    status.st_rdev = makedev(device.major, device.minor);
    file.presence = kMayHaveAcls;
  } else if (attributes.raw_device) {
    file.presence = attributes.raw_device->major & kPresence;
  }
  status.st_size = static_cast<off_t>(attributes.size.value_or(0));
  status.st_blksize = kPreferredIo;
  // stat(2) counts in 512 bytes.
  status.st_blocks = static_cast<blkcnt_t>((attributes.space_used.value_or(0) + 511) / 512);
  status.st_atim = to_timespec(attributes.time_access);
  status.st_mtim = to_timespec(attributes.time_modify);
  status.st_ctim = to_timespec(attributes.time_metadata);
  return file;
}

nfs4::Attributes mode_of_new(mode_t mode) {
  nfs4::Attributes attributes;
  attributes.mode = mode & 07777;
  return attributes;
}

nfs4::Attributes mode_of_new(mode_t mode, mode_t umask) {
  nfs4::Attributes attributes;
  attributes.mode_umask = {.mode = mode & 07777, .umask = umask & 0777};
  return attributes;
}

std::optional<std::pair<uint64_t, uint64_t>> thresholds_of(const nfs4::Attributes& attributes) {
  if (!attributes.mds_threshold) return std::nullopt;
  for (const nfs4::ThresholdItem& item : attributes.mds_threshold->items) {
    if (item.layout_type != nfs4::kLayoutTypePmem) continue;
    xdr::Decoder decoder(item.hint_list);
    std::pair<uint64_t, uint64_t> sizes{0, 0};
    if (item.hints.test(nfs4::ThresholdHint::kReadSize) && !decoder.get_u64(sizes.first)) return std::nullopt;
    if (item.hints.test(nfs4::ThresholdHint::kWriteSize) && !decoder.get_u64(sizes.second))
      return std::nullopt;
    return sizes;
  }
  return std::nullopt;
}

}  // namespace pnfsrdma::client
