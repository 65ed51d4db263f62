// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "fuse-client/acl_xattr.h"
#include "fuse-client/file_system.h"

// POSIX ACLs, as the extended attributes system.posix_acl_*. Which file has one comes with its attributes, so neither
// an `ls -l` nor the kernel's check of rights costs a call for one that has none.
namespace pnfsrdma::fuse_client {
namespace {

uint32_t flag_of(AclKind kind) {
  return kind == AclKind::kAccess ? nfs4::kHasAccessAcl : nfs4::kHasDefaultAcl;
}

nfs4::Attribute attribute_of(AclKind kind) {
  return kind == AclKind::kAccess ? nfs4::Attribute::kPosixAccessAcl : nfs4::Attribute::kPosixDefaultAcl;
}

// Empty: there is none beyond the mode.
nfs4::PosixAcl acl_in(const nfs4::Attributes& attributes, AclKind kind) {
  if (kind == AclKind::kDefault) return attributes.posix_default_acl.value_or(nfs4::PosixAcl());
  const nfs4::PosixAcl acl = attributes.posix_access_acl.value_or(nfs4::PosixAcl());
  return is_extended(acl) ? acl : nfs4::PosixAcl();
}

nfs4::Attributes attributes_of(AclKind kind, nfs4::PosixAcl acl) {
  nfs4::Attributes attributes;
  (kind == AclKind::kAccess ? attributes.posix_access_acl : attributes.posix_default_acl) = std::move(acl);
  return attributes;
}

}  // namespace

std::expected<uint32_t, int> FileSystem::presence_of(fuse_req_t request, Inode& file) {
  if (!parts_.posix_acls) return 0;
  if (const auto known = beliefs_.believed(file, parts_.clock.now())) return known->attributes.presence;
  nfs4::Attributes attributes;
  if (const int error = ask_attributes(request, file, client::stat_attributes(), attributes); error != 0)
    return std::unexpected(error);
  const auto known = file.last_known();
  return known ? known->presence : 0;
}

nfs4::Attributes FileSystem::mode_of_new(fuse_req_t request, mode_t mode) const {
  if (!parts_.posix_acls) return client::mode_of_new(mode);
  return client::mode_of_new(mode, fuse_req_ctx(request)->umask);
}

// PUTFH, GETATTR of these and what stat(2) shows.
int FileSystem::ask_attributes(fuse_req_t request, Inode& file, const nfs4::Bitmap& wanted,
                               nfs4::Attributes& attributes) {
  const Question question = ask(&file);
  CompoundReply reply;
  const int error = call(request,
                         {nfs4::PutFileHandleArguments{file.handle},
                          nfs4::GetAttributesArguments{client::stat_attributes() | wanted}},
                         reply);
  const auto* result = reply.result<nfs4::GetAttributesResponse>(1);
  if (error != 0 || result == nullptr) return error != 0 ? error : EIO;
  const auto known = client::to_file_attributes(result->attributes);
  if (!known) return EIO;
  (void)learn(file, question, *known);
  attributes = result->attributes;
  return 0;
}

// 0 calls where there is none and the attributes are believed, else 1.
std::expected<Bytes, int> FileSystem::get_acl(fuse_req_t request, Inode& file, AclKind kind) {
  if (!parts_.posix_acls) return std::unexpected(ENOTSUP);
  const auto known = beliefs_.believed(file, parts_.clock.now());
  if (known && (known->attributes.presence & flag_of(kind)) == 0) return std::unexpected(ENODATA);
  nfs4::Attributes attributes;
  const int error = ask_attributes(request, file, nfs4::Bitmap::of(attribute_of(kind)), attributes);
  if (error != 0) return std::unexpected(error);
  // A row that the server cannot read is not told as none.
  if (!attributes.mask().test(attribute_of(kind))) return std::unexpected(EIO);
  const nfs4::PosixAcl acl = acl_in(attributes, kind);
  if (acl.empty()) return std::unexpected(ENODATA);
  return acl_to_xattr(acl);
}

int FileSystem::set_acl(fuse_req_t request, Inode& file, AclKind kind, ByteSpan value) {
  if (!parts_.posix_acls) return ENOTSUP;
  // As Linux says of a file system of its own.
  if (kind == AclKind::kDefault && !file.has_type(S_IFDIR)) return EACCES;
  auto acl = acl_from_xattr(value);
  if (!acl || acl->empty()) return EINVAL;
  nfs4::Status status = nfs4::Status::kOk;
  return set_acl_attributes(request, file, attributes_of(kind, std::move(*acl)), std::nullopt, status);
}

// NFSv4 sets an access ACL and takes none away: without it the mode is left, as it was when the change attribute was
// this.
int FileSystem::remove_acl(fuse_req_t request, Inode& file, AclKind kind) {
  if (!parts_.posix_acls) return ENOTSUP;
  nfs4::Status status = nfs4::Status::kOk;
  if (kind == AclKind::kDefault) {
    if (!file.has_type(S_IFDIR)) return 0;
    return set_acl_attributes(request, file, attributes_of(kind, {}), std::nullopt, status);
  }
  constexpr int kTries = 100;
  for (int tries = 0; tries < kTries; ++tries) {
    nfs4::Attributes now;
    if (const int error = ask_attributes(request, file, nfs4::Bitmap::of(attribute_of(kind)), now);
        error != 0)
      return error;
    if (acl_in(now, kind).empty()) return 0;
    const int error = set_acl_attributes(
        request, file, attributes_of(kind, acl_of_mode(now.mode.value_or(0))), now.change, status);
    if (status != nfs4::Status::kNotSame) return error;
  }
  return EBUSY;
}

// PUTFH, [VERIFY of the change attribute], SETATTR, GETATTR.
int FileSystem::set_acl_attributes(fuse_req_t request, Inode& file, nfs4::Attributes attributes,
                                   std::optional<uint64_t> change, nfs4::Status& status) {
  Operations operations = {nfs4::PutFileHandleArguments{file.handle}};
  if (change) {
    nfs4::VerifyArguments verify;
    verify.attributes.change = change;
    operations.emplace_back(std::move(verify));
  }
  nfs4::SetAttributesArguments set;
  set.attributes = std::move(attributes);
  operations.emplace_back(std::move(set));
  const size_t told_at = operations.size();
  operations.emplace_back(nfs4::GetAttributesArguments{client::stat_attributes()});
  const Question question = ask(&file);
  const auto before = file.last_known();
  // Before and behind it, as for a mode: an OPEN may be answered meanwhile.
  file.rights_changed(parts_.clock.now());
  CompoundReply reply;
  const int error = call(request, std::move(operations), reply, true);
  file.rights_changed(parts_.clock.now());
  status = reply.status;
  const auto* result = reply.result<nfs4::GetAttributesResponse>(told_at);
  const auto told =
      result != nullptr ? client::to_file_attributes(result->attributes) : std::unexpected(reply.status);
  if (told) {
    // To the kernel a new mode is news, for which it has to take in the next answer, whatever becomes of its pages
    // (reply_attributes()).
    const bool is_same_mode = before && before->status.st_mode == told->status.st_mode;
    (void)learn(file, question, *told, is_same_mode);
  } else {
    file.expire();
  }
  return error;
}

}  // namespace pnfsrdma::fuse_client
