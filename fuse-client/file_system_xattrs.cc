// SPDX-License-Identifier: Apache-2.0
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "fuse-client/file_system.h"
#include "fuse-client/mount_attributes.h"

// Extended attributes: one call each (RFC 8276), and none where what is known of the file says that it has none; of
// "user." names only, which have no prefix on the wire. ACLs have names, too: file_system_acls.cc. All
// others are answered here, so that no write costs a call for a capability that cannot be.
namespace pnfsrdma::fuse_client {
namespace {

constexpr std::string_view kXattrPrefix = "user.";
// Of every file: what the server says of the caller's quota there.
constexpr std::string_view kQuotaXattr = "system.pnfsrdma.quota";
// Of a LISTXATTRS result; the kernel takes no more than 64 KiB of names.
constexpr uint32_t kListBytes = uint32_t{128} << 10;

std::optional<std::string_view> user_name(std::string_view name) {
  if (!name.starts_with(kXattrPrefix)) return std::nullopt;
  return name.substr(kXattrPrefix.size());
}

void reply_text(fuse_req_t request, std::string_view text, size_t size) {
  if (size == 0) {
    fuse_reply_xattr(request, text.size());
  } else if (text.size() > size) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, text.data(), text.size());
  }
}

nfs4::SetXattrOption option_of(int flags) {
  if ((flags & XATTR_CREATE) != 0) return nfs4::SetXattrOption::kCreate;
  return (flags & XATTR_REPLACE) != 0 ? nfs4::SetXattrOption::kReplace : nfs4::SetXattrOption::kEither;
}

}  // namespace

void FileSystem::getxattr(fuse_req_t request, fuse_ino_t node, const char* name, size_t size) {
  if (node == kRootNode) {
    if (const auto own = mount_attribute(parts_.status, name)) return reply_text(request, *own, size);
  }
  if (const auto kind = acl_kind(name)) {
    const auto acl = get_acl(request, *inode(node), *kind);
    return acl ? reply_text(request, as_text(*acl), size) : void(fuse_reply_err(request, acl.error()));
  }
  if (name == kQuotaXattr) {
    const auto quota = own_quota(request, *inode(node));
    return quota ? reply_text(request, *quota, size) : void(fuse_reply_err(request, quota.error()));
  }
  const auto wanted = user_name(name);
  if (!wanted) {
    fuse_reply_err(request, ENOTSUP);
    return;
  }
  const std::shared_ptr<Inode> file = inode(node);
  // Who may read it has been asked by the kernel.
  if (parts_.options.default_permissions && parts_.posix_acls) {
    const auto known = beliefs_.believed(*file, parts_.clock.now());
    if (known && known->attributes.lacks_xattrs()) {
      fuse_reply_err(request, ENODATA);
      return;
    }
  }
  CompoundReply reply;
  const int error = call(
      request, {nfs4::PutFileHandleArguments{file->handle}, nfs4::GetXattrArguments{std::string(*wanted)}},
      reply);
  const auto* result = reply.result<nfs4::GetXattrResponse>(1);
  if (error != 0 || result == nullptr) {
    fuse_reply_err(request, error != 0 ? error : EIO);
    return;
  }
  reply_text(request, as_text(result->value), size);
}

// As JSON; null: there is no limit.
std::expected<std::string, int> FileSystem::own_quota(fuse_req_t request, const Inode& inode) {
  using nfs4::Attribute;
  const nfs4::Bitmap wanted =
      nfs4::Bitmap::of(Attribute::kQuotaAvailableHard, Attribute::kQuotaAvailableSoft, Attribute::kQuotaUsed);
  CompoundReply reply;
  const int error = call(
      request, {nfs4::PutFileHandleArguments{inode.handle}, nfs4::GetAttributesArguments{wanted}}, reply);
  if (error != 0) return std::unexpected(error);
  const auto* result = reply.result<nfs4::GetAttributesResponse>(1);
  if (result == nullptr) return std::unexpected(EIO);
  const nfs4::Attributes& attributes = result->attributes;
  if (attributes.mask() != wanted) return std::unexpected(ENODATA);
  const auto left = [](uint64_t bytes) {
    return bytes == UINT64_MAX ? nlohmann::json() : nlohmann::json(bytes);
  };
  return nlohmann::json{{"space_used_bytes", *attributes.quota_used},
                        {"space_soft_left_bytes", left(*attributes.quota_available_soft)},
                        {"space_hard_left_bytes", left(*attributes.quota_available_hard)}}
      .dump();
}

void FileSystem::listxattr(fuse_req_t request, fuse_ino_t node, size_t size) {
  std::string names;
  if (node == kRootNode) {
    for (const std::string& own : listed_mount_attributes()) names.append(own).push_back('\0');
  }
  const std::shared_ptr<Inode> file = inode(node);
  const auto told = presence_of(request, *file);
  if (!told) {
    fuse_reply_err(request, told.error());
    return;
  }
  if (!file->has_type(S_IFCHR) && !file->has_type(S_IFBLK)) {
    // Of devices it is not known.
    if ((*told & nfs4::kHasAccessAcl) != 0) names.append(acl_name(AclKind::kAccess)).push_back('\0');
    if ((*told & nfs4::kHasDefaultAcl) != 0) names.append(acl_name(AclKind::kDefault)).push_back('\0');
  }
  // Whether there are any, everybody may know, as in Linux; the server tells their names to those who may read.
  bool end = client::FileAttributes{.presence = *told}.lacks_xattrs() ||
             (!file->has_type(S_IFREG) && !file->has_type(S_IFDIR));
  for (uint64_t cookie = 0; !end;) {
    CompoundReply reply;
    const int error = call(
        request, {nfs4::PutFileHandleArguments{file->handle}, nfs4::ListXattrsArguments{cookie, kListBytes}},
        reply);
    if (error == ENOTSUP) break;  // a server that has none
    const auto* result = reply.result<nfs4::ListXattrsResponse>(1);
    if (error != 0 || result == nullptr || (result->names.empty() && !result->end)) {
      fuse_reply_err(request, error != 0 ? error : EIO);
      return;
    }
    for (const auto& one : result->names) names.append(kXattrPrefix).append(one).push_back('\0');
    cookie = result->cookie;
    end = result->end;
  }
  reply_text(request, names, size);
}

void FileSystem::setxattr(fuse_req_t request, fuse_ino_t node, const char* name, std::string_view value,
                          int flags) {
  if (const auto kind = acl_kind(name)) {
    fuse_reply_err(request, set_acl(request, *inode(node), *kind, as_bytes(value)));
    return;
  }
  const auto wanted = user_name(name);
  if (!wanted) {
    fuse_reply_err(request, ENOTSUP);
    return;
  }
  const ByteSpan bytes = as_bytes(value);
  change_xattr(request, node,
               nfs4::SetXattrArguments{option_of(flags), std::string(*wanted), nfs4::XattrValue(bytes)},
               EEXIST);
}

void FileSystem::removexattr(fuse_req_t request, fuse_ino_t node, const char* name) {
  if (const auto kind = acl_kind(name)) {
    fuse_reply_err(request, remove_acl(request, *inode(node), *kind));
    return;
  }
  const auto wanted = user_name(name);
  if (!wanted) {
    fuse_reply_err(request, ENOTSUP);
    return;
  }
  change_xattr(request, node, nfs4::RemoveXattrArguments{std::string(*wanted)}, ENODATA);
}

// Whether the attribute has the value that this change gives it; one that takes it away has given none.
bool FileSystem::xattr_is_as_changed(fuse_req_t request, const Inode& file,
                                     const nfs4::ArgumentOperation& change) {
  const auto* set = std::get_if<nfs4::SetXattrArguments>(&change);
  if (set == nullptr) return true;
  CompoundReply reply;
  const int error =
      call(request, {nfs4::PutFileHandleArguments{file.handle}, nfs4::GetXattrArguments{set->key}}, reply);
  const auto* result = reply.result<nfs4::GetXattrResponse>(1);
  return error == 0 && result != nullptr && std::ranges::equal(result->value, set->value);
}

// PUTFH, the change, GETATTR: it moves ctime and change. `done`: what it says if it is sent again under a new session
// and the first one has done it. EEXIST may be somebody else's doing, as the value tells.
void FileSystem::change_xattr(fuse_req_t request, fuse_ino_t node, nfs4::ArgumentOperation change, int done) {
  const std::shared_ptr<Inode> file = inode(node);
  const Question question = ask(file.get());
  CompoundReply reply;
  int error = call(request,
                   {nfs4::PutFileHandleArguments{file->handle}, change,
                    nfs4::GetAttributesArguments{client::stat_attributes()}},
                   reply, true);
  if (error == done && reply.repeated && xattr_is_as_changed(request, *file, change)) error = 0;
  const auto* result = reply.result<nfs4::GetAttributesResponse>(2);
  if (result != nullptr) {
    if (const auto attributes = client::to_file_attributes(result->attributes))
      (void)learn(*file, question, *attributes, true);
  } else {
    // It may have been done all the same.
    file->expire();
  }
  fuse_reply_err(request, error);
}

}  // namespace pnfsrdma::fuse_client
