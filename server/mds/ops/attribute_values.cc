// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/attribute_values.h"

#include <sys/stat.h>

#include <charconv>
#include <type_traits>
#include <utility>

#include "server/mds/ops/data_operations.h"
#include "server/mds/ops/handle_keys.h"
#include "server/mds/state/server_limits.h"
#include "shared/base/bytes.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/nfs4/xattr_presence.h"
#include "shared/xdr/codec.h"

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

// Of what is no device: which ACLs it has, and whether extended attributes (shared/nfs4/posix_acl.h).
nfs4::SpecialData raw_device(const Inode& inode) {
  if (inode.type == FileType::kBlockDevice || inode.type == FileType::kCharacterDevice)
    return {inode.device_major, inode.device_minor};
  const bool access = (inode.flags & kInodeHasAccessAcl) != 0;
  const bool inherited = (inode.flags & kInodeHasDefaultAcl) != 0;
  const bool xattrs = (inode.flags & kInodeHasXattrs) != 0;
  return {nfs4::kTellsXattrs | (access ? nfs4::kHasAccessAcl : 0) | (inherited ? nfs4::kHasDefaultAcl : 0) |
              (xattrs ? nfs4::kHasXattrs : 0),
          0};
}

nfs4::PosixAcl on_wire(const PosixAcl& acl) {
  nfs4::PosixAcl entries;
  entries.reserve(acl.entries().size());
  for (const AclEntry& entry : acl.entries()) {
    const bool named = entry.tag == nfs4::PosixAceTag::kUser || entry.tag == nfs4::PosixAceTag::kGroup;
    entries.push_back({entry.tag, entry.permissions, named ? owner_text(entry.id) : std::string()});
  }
  return entries;
}

// Calls put(attribute, member of Attributes, function that gives the value) for each attribute of the one
// object, in the order of the wire.
template <typename Put>
void for_object_values(const Services& services, const ObjectHandle& handle, const Inode& inode,
                       const Put& put) {
  put(Attribute::kType, &Attributes::type, [&] { return static_cast<nfs4::FileType>(inode.type); });
  put(Attribute::kChange, &Attributes::change, [&] { return inode.change; });
  put(Attribute::kSize, &Attributes::size, [&] { return size_of(inode); });
  // Each export is a file system of its own: another fsid tells the client that it has crossed over.
  put(Attribute::kFsid, &Attributes::fsid, [&] {
    return nfs4::Fsid{load_big_endian<uint64_t>(services.identity.instance.data()), handle.export_id};
  });
  // READDIR asks for it in each entry: not a reason to put together what is the server's.
  put(Attribute::kReadAttributeError, &Attributes::read_attribute_error, [] { return nfs4::Status::kOk; });
  put(Attribute::kFileHandle, &Attributes::file_handle, [&] { return services.handles.encode(handle); });
  put(Attribute::kFileId, &Attributes::file_id, [&] { return inode.id; });
  put(Attribute::kMode, &Attributes::mode, [&] { return inode.mode; });
  put(Attribute::kLinkCount, &Attributes::link_count, [&] { return inode.nlink; });
  put(Attribute::kOwner, &Attributes::owner, [&] { return owner_text(inode.uid); });
  put(Attribute::kOwnerGroup, &Attributes::owner_group, [&] { return owner_text(inode.gid); });
  put(Attribute::kRawDevice, &Attributes::raw_device, [&] { return raw_device(inode); });
  put(Attribute::kSpaceUsed, &Attributes::space_used,
      [&] { return inode.is_directory() ? kDirectoryBytes : inode.space_used; });
  put(Attribute::kTimeAccess, &Attributes::time_access, [&] { return nfs4::Time::from(inode.atime); });
  put(Attribute::kTimeCreate, &Attributes::time_create, [&] { return nfs4::Time::from(inode.created); });
  put(Attribute::kTimeMetadata, &Attributes::time_metadata, [&] { return nfs4::Time::from(inode.ctime); });
  put(Attribute::kTimeModify, &Attributes::time_modify, [&] { return nfs4::Time::from(inode.mtime); });
  put(Attribute::kMountedOnFileId, &Attributes::mounted_on_file_id, [&] { return inode.id; });
  put(Attribute::kSpaceFreed, &Attributes::space_freed,
      [&] { return inode.nlink <= 1 && (inode.flags & kInodeShares) == 0 ? inode.space_used : 0; });
}

bool overlap(const Bitmap& one, const Bitmap& other) {
  for (size_t word = 0; word < std::min(one.size(), other.size()); ++word) {
    if ((one[word] & other[word]) != 0) return true;
  }
  return false;
}

const Bitmap& room_attributes() {
  static const Bitmap kRoom =
      Bitmap::of(Attribute::kSpaceTotal, Attribute::kSpaceFree, Attribute::kSpaceAvailable,
                 Attribute::kFilesTotal, Attribute::kFilesFree, Attribute::kFilesAvailable);
  return kRoom;
}

// In a quota tree with a limit, the limit is the size of the file system, as far as there is that much. A count that is
// not in memory makes the whole run void; one that cannot be read is no limit.
void put_room(Attributes& values, const Services& services, const Inode& inode) {
  const DataOperations::Space space = services.data.space();
  values.space_total = space.total;
  values.space_free = space.free;
  values.space_available = space.available;
  values.files_available = values.files_free = values.files_total = kFilesTotal;
  Quotas& quotas = services.names.quotas();
  if (const auto tree = quotas.tree_space(inode); tree && *tree) {
    const uint64_t left = std::min((*tree)->left, space.available);
    values.space_total = std::min((*tree)->total, space.total);
    values.space_free = values.space_available = left;
  }
  if (const auto tree = quotas.tree_inodes(inode); tree && *tree) {
    values.files_total = (*tree)->total;
    values.files_free = values.files_available = (*tree)->left;
  }
}

const Bitmap& quota_attributes() {
  static const Bitmap kQuotas =
      Bitmap::of(Attribute::kQuotaAvailableHard, Attribute::kQuotaAvailableSoft, Attribute::kQuotaUsed);
  return kQuotas;
}

// RFC 8881, 5.8.2.19 to 21, leaves to the server whose quota that is. Of a directory: of those that what the asker
// makes in it counts for; of anything else: of those that it counts for. Only of the asker and his groups, so that
// nobody learns what others have; the room in a tree is shown to everybody.
Quotas::Owners owners_shown(const CompoundContext& context, const Inode& inode) {
  const Credentials who = context.credentials();
  const bool gives_group = !inode.is_directory() || (inode.mode & S_ISGID) != 0;
  const uint32_t user = inode.is_directory() ? who.uid : inode.uid;
  const uint32_t group = gives_group ? inode.gid : who.gid;
  const QuotaTrees& trees = context.services.names.quotas().trees();
  Quotas::Owners owners;
  if (who.is_root() || who.uid == user) owners.add({QuotaKind::kUser, user});
  if (who.is_root() || who.in_group(group)) owners.add({QuotaKind::kGroup, group});
  if (const TreeNumber tree = trees.tree_of(inode); tree.value != 0)
    owners.add({QuotaKind::kTree, tree.value});
  return owners;
}

Result<Quotas::Standing> standing(const CompoundContext& context, const Inode& inode) {
  const Quotas::Owners owners = owners_shown(context, inode);
  if (owners.empty()) return Quotas::Standing{.used = inode.space_used};
  return context.services.names.quotas().standing(owners, context.services.clock.wall_now());
}

// Those whose record cannot be read are left out; where it is only not in memory, the whole run is void.
void put_quotas(Attributes& values, const CompoundContext& context, const Inode& inode) {
  const auto shown = standing(context, inode);
  if (!shown) return;
  values.quota_available_hard = shown->hard_left;
  values.quota_available_soft = shown->soft_left;
  values.quota_used = shown->used;
}

// RFC 9754, 3. Nothing is signalled or pushed, though it may be asked for.
nfs4::OpenSupport open_support(bool delegations) {
  using nfs4::ClaimType;
  using nfs4::OpenWant;
  nfs4::OpenSupport support;
  support.share_access = Bitmap::of(nfs4::kShareAccessRead, nfs4::kShareAccessWrite, nfs4::kShareAccessBoth);
  support.share_deny =
      Bitmap::of(nfs4::kShareDenyNone, nfs4::kShareDenyRead, nfs4::kShareDenyWrite, nfs4::kShareDenyBoth);
  support.share_access_want =
      delegations ? Bitmap::of(OpenWant::kAnyDelegation, OpenWant::kNoDelegation, OpenWant::kCancel,
                               OpenWant::kDelegatedTimes, OpenWant::kOpenOrDelegation)
                  : Bitmap::of(OpenWant::kNoDelegation, OpenWant::kCancel);
  support.open_claim = Bitmap::of(ClaimType::kNull, ClaimType::kPrevious, ClaimType::kDelegateCurrent,
                                  ClaimType::kFileHandle, ClaimType::kDelegateCurrentFileHandle);
  support.create_mode = Bitmap::of(nfs4::CreateMode::kUnchecked, nfs4::CreateMode::kGuarded,
                                   nfs4::CreateMode::kExclusive, nfs4::CreateMode::kExclusive41);
  return support;
}

// Attributes of the whole server.
void put_server(Attributes& values, const Services& services, const Inode& inode, const Bitmap& requested) {
  values.supported_attributes = supported_attributes(services);
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
  values.homogeneous = true;
  values.max_file_size = kFileSizeMax;
  values.max_link = kLinksMax;
  values.max_name = kNameBytesMax;
  values.max_read = values.max_write = services.limits.io_bytes_max;
  values.no_truncate = true;
  values.time_delta = nfs4::Time{0, 1};
  values.supported_exclusive_create = settable_attributes().without(times_of_holders());
  values.charset_capabilities = kCharsetContainsNonUtf8;
  values.change_type = nfs4::ChangeType::kMonotonic;
  values.xattr_support = true;
  values.acl_true_form = nfs4::AclModel::kPosixDraft;
  values.acl_true_form_scope = nfs4::AclScope::kFileSystem;
  if (requested.test(Attribute::kOpenArguments))
    values.open_arguments = open_support(services.limits.delegations);
  if (overlap(requested, room_attributes())) put_room(values, services, inode);
}

void put_layouts(Attributes& values, const Inode& inode, const Services& services) {
  const bool available = services.data.layouts_available();
  values.fs_layout_types = available ? nfs4::LayoutTypes{nfs4::kLayoutTypePmem} : nfs4::LayoutTypes{};
  values.layout_types = available && inode.is_regular() ? *values.fs_layout_types : nfs4::LayoutTypes{};
  values.layout_block_size = services.data.layout_block_size();
  values.clone_block_size = services.data.layout_block_size();
  values.layout_alignment = kLayoutAlignment;
  values.mds_threshold = available && inode.is_regular() ? threshold(services.limits) : nfs4::MdsThreshold{};
}

// One whose row cannot be read is left out; where it is only not in memory, the whole run is void.
void put_acls(Attributes& values, const Services& services, const Inode& inode) {
  if (auto acl = services.names.access_acl(inode)) values.posix_access_acl = on_wire(*acl);
  if (auto acl = services.names.default_acl(inode)) values.posix_default_acl = on_wire(*acl);
}

const Bitmap& acl_attributes() {
  static const Bitmap kAcls = Bitmap::of(Attribute::kPosixDefaultAcl, Attribute::kPosixAccessAcl);
  return kAcls;
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

}  // namespace

const Bitmap& supported_attributes(const Services& services) {
  // All that the wire types know but what this server has no values for.
  static const Bitmap kSupported =
      nfs4::known_attributes().without(Bitmap::of(Attribute::kTimeBackup, Attribute::kChangePolicy));
  static const Bitmap kWithoutQuotas = kSupported.without(quota_attributes());
  return services.names.quotas().on() ? kSupported : kWithoutQuotas;
}

const Bitmap& write_only_attributes() {
  static const Bitmap kWriteOnly =
      Bitmap::of(Attribute::kTimeAccessSet, Attribute::kTimeModifySet, Attribute::kModeSetMasked,
                 Attribute::kModeUmask, Attribute::kTimeDelegatedAccess, Attribute::kTimeDelegatedModify);
  return kWriteOnly;
}

const Bitmap& settable_attributes() {
  static const Bitmap kSettable =
      Bitmap::of(Attribute::kSize, Attribute::kMode, Attribute::kOwner, Attribute::kOwnerGroup,
                 Attribute::kTimeAccessSet, Attribute::kTimeCreate, Attribute::kTimeModifySet,
                 Attribute::kModeSetMasked, Attribute::kModeUmask, Attribute::kTimeDelegatedAccess,
                 Attribute::kTimeDelegatedModify, Attribute::kPosixDefaultAcl, Attribute::kPosixAccessAcl);
  return kSettable;
}

const Bitmap& times_of_holders() {
  static const Bitmap kTimes = Bitmap::of(Attribute::kTimeDelegatedAccess, Attribute::kTimeDelegatedModify);
  return kTimes;
}

WantedAttributes::WantedAttributes(const Services& services, const Bitmap& requested)
    : wanted_((requested & supported_attributes(services)).without(write_only_attributes())),
      layouts_wanted_(overlap(wanted_, layout_attributes())),
      acls_wanted_(overlap(wanted_, acl_attributes())),
      quotas_wanted_(overlap(wanted_, quota_attributes())),
      server_wanted_(!object_attributes().contains(wanted_)) {
  for (size_t word = 0; word < words_.size(); ++word) words_[word] = wanted_.word(word);
}

Attributes WantedAttributes::of(const CompoundContext& context, const ObjectHandle& handle,
                                const Inode& inode) const {
  const Services& services = context.services;
  Attributes values;
  for_object_values(services, handle, inode, [&](Attribute attribute, auto member, const auto& value) {
    if (wanted(attribute)) values.*member = value();
  });
  if (layouts_wanted_) put_layouts(values, inode, services);
  if (acls_wanted_) put_acls(values, services, inode);
  if (quotas_wanted_) put_quotas(values, context, inode);
  if (server_wanted_) put_server(values, services, inode, wanted_);
  if (layouts_wanted_ || server_wanted_) values.keep_only(wanted_);
  return values;
}

void WantedAttributes::encode(xdr::Encoder& encoder, const CompoundContext& context,
                              const ObjectHandle& handle, const Inode& inode) const {
  if (layouts_wanted_ || server_wanted_) return xdr::encode(encoder, of(context, handle, inode));
  const xdr::Encoder::Staging staging(encoder);
  xdr::encode(encoder, wanted_);
  const size_t length_at = encoder.position();
  encoder.put_u32(0);
  const size_t start = encoder.position();
  const auto put = [&](Attribute attribute, auto member, const auto& value) {
    using Value = typename std::remove_cvref_t<decltype(std::declval<Attributes>().*member)>::value_type;
    if (wanted(attribute)) xdr::encode<Value>(encoder, Value(value()));
  };
  for_object_values(context.services, handle, inode, put);
  encoder.patch_u32(length_at, static_cast<uint32_t>(encoder.position() - start));
}

void WantedAttributes::read(const CompoundContext& context, const Inode& inode) const {
  const Services& services = context.services;
  if (quotas_wanted_) static_cast<void>(standing(context, inode));
  if (server_wanted_ && overlap(wanted_, room_attributes())) {
    static_cast<void>(services.names.quotas().tree_space(inode));
    static_cast<void>(services.names.quotas().tree_inodes(inode));
  }
  if (!acls_wanted_) return;
  static_cast<void>(services.names.access_acl(inode));
  static_cast<void>(services.names.default_acl(inode));
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
