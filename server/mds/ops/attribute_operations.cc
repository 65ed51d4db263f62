// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/attribute_values.h"
#include "server/mds/ops/delegated_times.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/ops/held_attributes.h"
#include "server/mds/ops/settable_attributes.h"
#include "server/mds/ops/size_change.h"
#include "server/mds/state/conflicts.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// VERIFY and NVERIFY: whether the object has all of these values.
Outcome<bool> has_values(CompoundContext& context, const nfs4::Attributes& wanted) {
  TRY_ASSIGN(const InodePointer inode, context.current_inode());
  const nfs4::Bitmap asked = wanted.mask();
  if (wanted.unsupported || !supported_attributes(context.services).contains(asked))
    return std::unexpected(Status::kAttrNotSupp);
  // RFC 8881, 18.31.3: what can only be set, and rdattr_error, have no value to compare.
  // Nor may ACLs be compared, whose entries are in any order (draft-ietf-nfsv4-posix-acls, 9.3).
  const nfs4::Bitmap incomparable =
      write_only_attributes() |
      nfs4::Bitmap::of(nfs4::Attribute::kReadAttributeError, nfs4::Attribute::kPosixDefaultAcl,
                       nfs4::Attribute::kPosixAccessAcl);
  if (!(asked & incomparable).none()) return std::unexpected(Status::kInval);
  const WantedAttributes compared(context.services, asked);
  if (compared.quotas_wanted()) TRY(context.find_groups());
  TRY_ASSIGN(const InodePointer shown, as_its_holder_knows(context, inode, asked));
  return compared.of(context, *context.current.handle, *shown) == wanted;
}

// The stateid and the mode it must be open with (RFC 8881, 18.30.3): only a change of size needs either.
Outcome<> check_size_change(const CompoundContext& context, const nfs4::Stateid& stateid,
                            const Inode& inode) {
  if (inode.is_directory()) return std::unexpected(Status::kIsDir);
  if (!inode.is_regular()) return std::unexpected(Status::kInval);
  TRY_ASSIGN(const OpenAccess access, context.io_access(stateid, inode, /*write=*/true));
  if (!access.write) return std::unexpected(Status::kOpenMode);
  return {};
}

// Whether a file gets bits that a write by somebody without privilege takes away again; by an ACL, too: its mask may
// make a set-group-id bit one.
bool sets_set_id(const Inode& inode, std::optional<uint32_t> mode, const std::optional<PosixAcl>& acl) {
  constexpr uint32_t kPermissionBits = 0777;
  if ((!mode && !acl) || !inode.is_regular()) return false;
  Inode changed = inode;
  changed.mode = mode.value_or(inode.mode);
  if (acl) changed.mode = (changed.mode & ~kPermissionBits) | acl->mode_bits();
  return mode_without_setid(changed) != changed.mode;
}

// No other holder of a delegation is in the way of these: he keeps his own, or none.
bool sets_times_of_holder_only(const nfs4::Attributes& attributes) {
  const nfs4::Bitmap asked = attributes.mask();
  return !asked.none() && times_of_holders().contains(asked);
}

}  // namespace

// RFC 8881, 18.1
nfs4::AccessResponse handle(CompoundContext& context, const nfs4::AccessArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_inode());
  TRY_ASSIGN(const AccessAnswer answer, access_mask(context.requester(), *inode, arguments.access));
  uint32_t granted = answer.granted;
  if (context.read_only()) {
    granted &= ~(nfs4::kAccessModify | nfs4::kAccessExtend | nfs4::kAccessDelete | nfs4::kAccessXattrWrite);
  }
  return nfs4::AccessResult{.supported = answer.supported, .access = granted};
}

// RFC 8881, 18.7
nfs4::GetAttributesResponse handle(CompoundContext& context, const nfs4::GetAttributesArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_inode());
  if (!(arguments.requested & write_only_attributes()).none()) return Status::kInval;
  const WantedAttributes wanted(context.services, arguments.requested);
  if (wanted.quotas_wanted()) TRY(context.find_groups());
  TRY_ASSIGN(const InodePointer shown, as_its_holder_knows(context, inode, arguments.requested));
  return nfs4::GetAttributesResult{wanted.of(context, *context.current.handle, *shown)};
}

// RFC 8881, 18.30; of what a holder says of times, RFC 9754, 5
nfs4::SetAttributesResponse handle(CompoundContext& context, const nfs4::SetAttributesArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_inode());
  TRY_ASSIGN(const SettableAttributes wanted,
             settable_attributes(context.services, arguments.attributes, inode->mode));
  if (wanted.umask) return Status::kInval;  // RFC 8275, 3: of new objects only
  TRY(wanted.check_type(inode->type));
  TRY(context.check_writable());
  if (wanted.stores_acl() && context.services.store.room().full) return Status::kNoSpc;
  if (wanted.size) TRY(check_size_change(context, arguments.stateid, *inode));
  AttributeWish wish = wanted.wish();
  wish.size = false;  // checked with the stateid
  const AttributeVerdict verdict = check_attributes(context.requester(), *inode, wish);
  if (verdict.status != Status::kOk) return verdict.status;
  TRY_ASSIGN(const HeldTimes held_times, told_times(context, arguments.stateid, *inode, wanted.held_times));
  if (sets_times_of_holder_only(arguments.attributes)) {
    TRY(take_times(context, *inode, held_times));
    return nfs4::SetAttributesResult{arguments.attributes.mask()};
  }

  TRY(context.recall_delegations(*inode));
  LayoutConflicts& layouts = context.services.layouts;
  if (wanted.uid || wanted.gid) {
    TRY_ASSIGN(const Status allowed, context.suspension.ask<Status>([&](auto done) {
      InodeUpdate owners = wanted.update();
      owners.size = wanted.size;
      layouts.before_owner_change(inode->id, owners, std::move(done));
    }));
    if (allowed != Status::kOk) return allowed;
  }
  if (wanted.changes_access()) {
    TRY_ASSIGN(const Status recalled, context.suspension.ask<Status>([&](auto done) {
      layouts.before_access_change(inode->id, context.client_id(), std::move(done));
    }));
    if (recalled != Status::kOk) return recalled;
  }
  if (sets_set_id(*inode, verdict.mode, wanted.access_acl)) {
    TRY_ASSIGN(const Status recalled, context.suspension.ask<Status>([&](auto done) {
      layouts.before_set_id(inode->id, context.client_id(), std::move(done));
    }));
    if (recalled != Status::kOk) return recalled;
  }
  if (wanted.size) TRY(change_size(context, *inode, *wanted.size));
  InodeUpdate update = wanted.update();
  update.mode = verdict.mode;
  // The size, and the times with it, are committed already.
  const bool more = update.mode || update.uid || update.gid || update.atime || update.mtime ||
                    update.created || update.access_acl || update.default_acl;
  if (more) TRY(context.services.names.update(inode->id, update));
  TRY(take_times(context, *inode, held_times));
  return nfs4::SetAttributesResult{arguments.attributes.mask()};
}

// RFC 8881, 18.31
nfs4::VerifyResponse handle(CompoundContext& context, const nfs4::VerifyArguments& arguments) {
  TRY_ASSIGN(const bool same, has_values(context, arguments.attributes));
  if (!same) return Status::kNotSame;
  if (arguments.attributes.file_handle)
    context.verified = {context.verified[1], context.current.handle->inode};
  return Status::kOk;
}

// RFC 8881, 18.15
nfs4::NegatedVerifyResponse handle(CompoundContext& context, const nfs4::NegatedVerifyArguments& arguments) {
  TRY_ASSIGN(const bool same, has_values(context, arguments.attributes));
  return same ? Status::kSame : Status::kOk;
}

}  // namespace pnfsrdma::mds
