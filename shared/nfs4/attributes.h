// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/posix_acl.h"
#include "shared/xdr/decoder.h"
#include "shared/xdr/encoder.h"

// File attributes (RFC 8881, 5; RFC 7862, 12; RFC 8275; RFC 8276, 8.2; RFC 9754; draft-ietf-nfsv4-posix-acls): the
// table, and fattr4 as a decoded struct.
namespace pnfsrdma::nfs4 {

// change_attr_type4 (RFC 7862, 12.2.3)
enum class ChangeType : uint32_t {
  kMonotonic = 0,
  kVersionCounter = 1,
  kVersionCounterNoPnfs = 2,
  kTimeMetadata = 3,
  kUndefined = 4,
};
constexpr bool xdr_known(ChangeType type) {
  return type <= ChangeType::kUndefined;
}

// mdsthreshold4: files or I/Os smaller than this are better done through the MDS (RFC 8881, 12.2.10). The
// hint list's words are there for the bits set in `hints`, lowest first.
enum class ThresholdHint : uint32_t { kReadSize = 0, kWriteSize = 1, kReadIoSize = 2, kWriteIoSize = 3 };
struct ThresholdItem {
  uint32_t layout_type = 0;
  Bitmap hints;
  xdr::Opaque<kOpaqueMax> hint_list;
};
struct MdsThreshold {
  xdr::List<ThresholdItem, kSmallListMax> items;
};

// mode_masked4: only the bits of `mask` are set or reset.
struct ModeMasked {
  uint32_t value = 0;
  uint32_t mask = 0;
};
struct ChangePolicy {
  uint64_t major = 0;
  uint64_t minor = 0;
};

using LayoutTypes = xdr::List<uint32_t, kSmallListMax>;

// open_arguments4 (RFC 9754, 3.1): what OPEN understands. A bit's number is the value that is understood; of
// `share_access_want`, see OpenWant in open_operations.h.
struct OpenSupport {
  Bitmap share_access;
  Bitmap share_deny;
  Bitmap share_access_want;
  Bitmap open_claim;
  Bitmap create_mode;
};

// X(number, enumerator, member, type): the attributes we know, in the order of their numbers, which is the
// wire order.
// clang-format off
#define PNFSRDMA_NFS4_ATTRIBUTES(X) \
  X(0, kSupportedAttributes, supported_attributes, Bitmap) \
  X(1, kType, type, FileType) \
  X(2, kHandleExpireType, handle_expire_type, uint32_t) \
  X(3, kChange, change, uint64_t) \
  X(4, kSize, size, uint64_t) \
  X(5, kLinkSupport, link_support, bool) \
  X(6, kSymlinkSupport, symlink_support, bool) \
  X(7, kNamedAttributes, named_attributes, bool) \
  X(8, kFsid, fsid, Fsid) \
  X(9, kUniqueHandles, unique_handles, bool) \
  X(10, kLeaseTime, lease_time, uint32_t) \
  X(11, kReadAttributeError, read_attribute_error, Status) \
  X(13, kAclSupport, acl_support, uint32_t) \
  X(15, kCanSetTime, can_set_time, bool) \
  X(16, kCaseInsensitive, case_insensitive, bool) \
  X(17, kCasePreserving, case_preserving, bool) \
  X(18, kChownRestricted, chown_restricted, bool) \
  X(19, kFileHandle, file_handle, FileHandle) \
  X(20, kFileId, file_id, uint64_t) \
  X(21, kFilesAvailable, files_available, uint64_t) \
  X(22, kFilesFree, files_free, uint64_t) \
  X(23, kFilesTotal, files_total, uint64_t) \
  X(26, kHomogeneous, homogeneous, bool) \
  X(27, kMaxFileSize, max_file_size, uint64_t) \
  X(28, kMaxLink, max_link, uint32_t) \
  X(29, kMaxName, max_name, uint32_t) \
  X(30, kMaxRead, max_read, uint64_t) \
  X(31, kMaxWrite, max_write, uint64_t) \
  X(33, kMode, mode, uint32_t) \
  X(34, kNoTruncate, no_truncate, bool) \
  X(35, kLinkCount, link_count, uint32_t) \
  X(36, kOwner, owner, Text) \
  X(37, kOwnerGroup, owner_group, Text) \
  X(38, kQuotaAvailableHard, quota_available_hard, uint64_t) \
  X(39, kQuotaAvailableSoft, quota_available_soft, uint64_t) \
  X(40, kQuotaUsed, quota_used, uint64_t) \
  X(41, kRawDevice, raw_device, SpecialData) \
  X(42, kSpaceAvailable, space_available, uint64_t) \
  X(43, kSpaceFree, space_free, uint64_t) \
  X(44, kSpaceTotal, space_total, uint64_t) \
  X(45, kSpaceUsed, space_used, uint64_t) \
  X(47, kTimeAccess, time_access, Time) \
  X(48, kTimeAccessSet, time_access_set, SetTime) \
  X(49, kTimeBackup, time_backup, Time) \
  X(50, kTimeCreate, time_create, Time) \
  X(51, kTimeDelta, time_delta, Time) \
  X(52, kTimeMetadata, time_metadata, Time) \
  X(53, kTimeModify, time_modify, Time) \
  X(54, kTimeModifySet, time_modify_set, SetTime) \
  X(55, kMountedOnFileId, mounted_on_file_id, uint64_t) \
  X(60, kChangePolicy, change_policy, ChangePolicy) \
  X(62, kFsLayoutTypes, fs_layout_types, LayoutTypes) \
  X(64, kLayoutTypes, layout_types, LayoutTypes) \
  X(65, kLayoutBlockSize, layout_block_size, uint32_t) \
  X(66, kLayoutAlignment, layout_alignment, uint32_t) \
  X(68, kMdsThreshold, mds_threshold, MdsThreshold) \
  X(74, kModeSetMasked, mode_set_masked, ModeMasked) \
  X(75, kSupportedExclusiveCreate, supported_exclusive_create, Bitmap) \
  X(76, kCharsetCapabilities, charset_capabilities, uint32_t) \
  X(77, kCloneBlockSize, clone_block_size, uint32_t) \
  X(78, kSpaceFreed, space_freed, uint64_t) \
  X(79, kChangeType, change_type, ChangeType) \
  X(81, kModeUmask, mode_umask, ModeUmask) \
  X(82, kXattrSupport, xattr_support, bool) \
  X(84, kTimeDelegatedAccess, time_delegated_access, Time) \
  X(85, kTimeDelegatedModify, time_delegated_modify, Time) \
  X(86, kOpenArguments, open_arguments, OpenSupport) \
  X(89, kAclTrueForm, acl_true_form, AclModel) \
  X(90, kAclTrueFormScope, acl_true_form_scope, AclScope) \
  X(91, kPosixDefaultAcl, posix_default_acl, PosixAcl) \
  X(92, kPosixAccessAcl, posix_access_acl, PosixAcl)
// clang-format on

enum class Attribute : uint32_t {
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) enumerator = number,
  PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
};

// fattr4. What is set is on the wire. A received attribute outside the table (an NFSv4 ACL, say) can't be skipped,
// as fattr4 gives no length per attribute: then `unsupported` is set and all others are empty, and whoever
// was to use them answers NFS4ERR_ATTRNOTSUPP. Values that do not fill attr_vals exactly are BADXDR.
struct Attributes {
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) std::optional<type> member;
  PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
  bool unsupported = false;

  // Compiled once: sixty optionals are heavy wherever they are inlined.
  Attributes();
  Attributes(const Attributes&);
  Attributes(Attributes&&) noexcept;
  Attributes& operator=(const Attributes&);
  Attributes& operator=(Attributes&&) noexcept;
  ~Attributes();

  // The bits of what is set.
  Bitmap mask() const;
  // Forgets what is not in `wanted`.
  void keep_only(const Bitmap& wanted);
  bool empty() const { return mask().empty() && !unsupported; }
};
void xdr_encode(xdr::Encoder& encoder, const Attributes& attributes);
bool xdr_decode(xdr::Decoder& decoder, Attributes& attributes);
// By what goes on the wire.
bool operator==(const Attributes& one, const Attributes& other);

// Every attribute of the table.
const Bitmap& known_attributes();
// "size"; null outside the table.
const char* name_of(Attribute attribute);

}  // namespace pnfsrdma::nfs4
