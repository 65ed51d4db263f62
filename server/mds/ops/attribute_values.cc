// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/attribute_values.h"

#include <charconv>

#include "server/mds/ops/data_operations.h"
#include "server/mds/ops/handle_keys.h"
#include "server/mds/state/server_limits.h"
#include "shared/base/bytes.h"
#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::mds {

using nfs4::Attribute;
using nfs4::Attributes;
using nfs4::Bitmap;

namespace {

inline constexpr uint64_t kDirectoryBytes = 4096;
inline constexpr uint32_t kLayoutAlignment = 4096;
// Inode numbers do not run out: what files_* shows is a round number that statfs(2) can carry.
inline constexpr uint64_t kFilesTotal = uint64_t{1} << 48;
// fs_charset_cap (RFC 8881, 14.4): names are bytes, as POSIX has them, not necessarily UTF-8.
inline constexpr uint32_t kCharsetContainsNonUtf8 = 1;

uint64_t size_of(const Inode& inode) {
  if (inode.is_directory()) return kDirectoryBytes;
  return inode.type == FileType::kSymlink ? inode.symlink_target.size() : inode.size;
}

// mdsthreshold (RFC 8881, 5.12.4): small files and small I/O are cheaper through the server than by a layout.
nfs4::MdsThreshold threshold(const ServerLimits& limits) {
  nfs4::ThresholdItem item;
  item.layout_type = nfs4::kLayoutTypePmem;
  const auto add = [&item](nfs4::ThresholdHint hint, uint64_t bytes) {
    if (bytes == 0) return;
    item.hints.set(hint);
    item.hint_list.resize(item.hint_list.size() + sizeof(bytes));
    store_big_endian(item.hint_list.data() + item.hint_list.size() - sizeof(bytes), bytes);
  };
  add(nfs4::ThresholdHint::kReadSize, limits.small_file_bytes);
  add(nfs4::ThresholdHint::kWriteSize, limits.small_file_bytes);
  add(nfs4::ThresholdHint::kReadIoSize, limits.small_io_bytes);
  add(nfs4::ThresholdHint::kWriteIoSize, limits.small_io_bytes);
  nfs4::MdsThreshold threshold;
  if (!item.hints.none()) threshold.items.push_back(std::move(item));
  return threshold;
}

// Attributes of the one object.
void put_object(Attributes& values, const ObjectHandle& handle, const Inode& inode, const Services& services,
                bool handle_wanted) {
  values.type = static_cast<nfs4::FileType>(inode.type);
  values.change = inode.change;
  values.size = size_of(inode);
  const auto major = load_big_endian<uint64_t>(services.identity.instance.data());
  // Each export is a file system of its own: another fsid tells the client that it has crossed over.
  values.fsid = nfs4::Fsid{major, handle.export_id};
  // The one value here that costs an allocation.
  if (handle_wanted) values.file_handle = services.handles.encode(handle);
  values.file_id = inode.id;
  values.mounted_on_file_id = inode.id;
  values.mode = inode.mode;
  values.link_count = inode.nlink;
  values.owner = owner_text(inode.uid);
  values.owner_group = owner_text(inode.gid);
  values.raw_device = nfs4::SpecialData{inode.device_major, inode.device_minor};
  values.space_used = inode.is_directory() ? kDirectoryBytes : inode.space_used;
  values.space_freed = inode.nlink <= 1 ? inode.space_used : 0;
  values.time_access = nfs4::Time::from(inode.atime);
  values.time_create = nfs4::Time::from(inode.created);
  values.time_metadata = nfs4::Time::from(inode.ctime);
  values.time_modify = nfs4::Time::from(inode.mtime);
  // READDIR asks for it in each entry: not a reason to put together what is the server's.
  values.read_attribute_error = nfs4::Status::kOk;
}

// Attributes of the whole server.
void put_server(Attributes& values, const Services& services, const Bitmap& requested) {
  values.supported_attributes = supported_attributes();
  values.handle_expire_type = 0;  // FH4_PERSISTENT
  values.link_support = true;
  values.symlink_support = true;
  values.named_attributes = false;
  values.unique_handles = services.exports.size() == 1;
  values.lease_time = static_cast<uint32_t>(services.limits.lease.count() / 1000);
  values.acl_support = 0;
  values.can_set_time = true;
  values.case_insensitive = false;
  values.case_preserving = true;
  values.chown_restricted = true;
  values.files_available = values.files_free = values.files_total = kFilesTotal;
  values.homogeneous = true;
  values.max_file_size = kFileSizeMax;
  values.max_link = kLinksMax;
  values.max_name = kNameBytesMax;
  values.max_read = values.max_write = services.limits.io_bytes_max;
  values.no_truncate = true;
  values.time_delta = nfs4::Time{0, 1};
  values.supported_exclusive_create = settable_attributes();
  values.charset_capabilities = kCharsetContainsNonUtf8;
  values.change_type = nfs4::ChangeType::kMonotonic;
  values.xattr_support = false;
  if (requested.test(Attribute::kSpaceTotal) || requested.test(Attribute::kSpaceFree) ||
      requested.test(Attribute::kSpaceAvailable)) {
    const DataOperations::Space space = services.data.space();
    values.space_total = space.total;
    values.space_free = space.free;
    values.space_available = space.available;
  }
}

void put_layouts(Attributes& values, const Inode& inode, const Services& services) {
  const bool available = services.data.layouts_available();
  values.fs_layout_types = available ? nfs4::LayoutTypes{nfs4::kLayoutTypePmem} : nfs4::LayoutTypes{};
  values.layout_types = available && inode.is_regular() ? *values.fs_layout_types : nfs4::LayoutTypes{};
  values.layout_block_size = services.data.layout_block_size();
  values.layout_alignment = kLayoutAlignment;
  values.mds_threshold = available && inode.is_regular() ? threshold(services.limits) : nfs4::MdsThreshold{};
}

// Whether any of the requested bits are in this table of attributes the hot path never asks for.
const Bitmap& layout_attributes() {
  static const Bitmap kLayout =
      Bitmap::of(Attribute::kFsLayoutTypes, Attribute::kLayoutTypes, Attribute::kLayoutBlockSize,
                 Attribute::kLayoutAlignment, Attribute::kMdsThreshold);
  return kLayout;
}
const Bitmap& object_attributes() {
  static const Bitmap kObject = Bitmap::of(
      Attribute::kType, Attribute::kChange, Attribute::kSize, Attribute::kFsid, Attribute::kFileHandle,
      Attribute::kFileId, Attribute::kMode, Attribute::kLinkCount, Attribute::kOwner, Attribute::kOwnerGroup,
      Attribute::kRawDevice, Attribute::kSpaceUsed, Attribute::kTimeAccess, Attribute::kTimeCreate,
      Attribute::kTimeMetadata, Attribute::kTimeModify, Attribute::kMountedOnFileId, Attribute::kSpaceFreed,
      Attribute::kReadAttributeError);
  return kObject;
}

bool overlap(const Bitmap& one, const Bitmap& other) {
  for (size_t word = 0; word < std::min(one.size(), other.size()); ++word) {
    if ((one[word] & other[word]) != 0) return true;
  }
  return false;
}

}  // namespace

const Bitmap& supported_attributes() {
  static const Bitmap kSupported = [] {
    // All that the wire types know but what this server has no values for.
    return nfs4::known_attributes().without(
        Bitmap::of(Attribute::kQuotaAvailableHard, Attribute::kQuotaAvailableSoft, Attribute::kQuotaUsed,
                   Attribute::kTimeBackup, Attribute::kChangePolicy, Attribute::kCloneBlockSize));
  }();
  return kSupported;
}

const Bitmap& write_only_attributes() {
  static const Bitmap kWriteOnly =
      Bitmap::of(Attribute::kTimeAccessSet, Attribute::kTimeModifySet, Attribute::kModeSetMasked);
  return kWriteOnly;
}

const Bitmap& settable_attributes() {
  static const Bitmap kSettable =
      Bitmap::of(Attribute::kSize, Attribute::kMode, Attribute::kOwner, Attribute::kOwnerGroup,
                 Attribute::kTimeAccessSet, Attribute::kTimeCreate, Attribute::kTimeModifySet,
                 Attribute::kModeSetMasked);
  return kSettable;
}

WantedAttributes::WantedAttributes(const Bitmap& requested)
    : wanted_((requested & supported_attributes()).without(write_only_attributes())),
      handle_wanted_(wanted_.test(Attribute::kFileHandle)),
      error_wanted_(wanted_.test(Attribute::kReadAttributeError)),
      layouts_wanted_(overlap(wanted_, layout_attributes())),
      server_wanted_(!object_attributes().contains(wanted_)) {}

Attributes WantedAttributes::of(const Services& services, const ObjectHandle& handle,
                                const Inode& inode) const {
  Attributes values;
  put_object(values, handle, inode, services, handle_wanted_);
  if (layouts_wanted_) put_layouts(values, inode, services);
  if (server_wanted_) put_server(values, services, wanted_);
  values.keep_only(wanted_);
  return values;
}

std::string owner_text(uint32_t id) {
  return std::to_string(id);
}

std::optional<uint32_t> parse_owner(std::string_view text) {
  const std::string_view name = text.substr(0, text.find('@'));
  if (name == "root") return 0;
  if (name == "nobody" || name == "nogroup") return 65534;
  uint32_t id = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), id);
  if (name.empty() || parsed.ec != std::errc() || parsed.ptr != name.data() + name.size())
    return std::nullopt;
  return id;
}

}  // namespace pnfsrdma::mds
