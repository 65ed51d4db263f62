// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "fuse-client/file_system.h"
#include "fuse-client/mount_status.h"

// statfs, and the mount's own status as extended attributes of its root.
namespace pnfsrdma::fuse_client {
namespace {

struct Attribute {
  std::string_view name;
  std::string (MountStatus::*text)() const;
  bool listed;  // getfattr -d shows it
};

constexpr std::array kAttributes = {
    Attribute{"pnfsrdma.transport", &MountStatus::transport, true},
    Attribute{"pnfsrdma.durability", &MountStatus::durability, true},
    Attribute{"pnfsrdma.statistics", &MountStatus::statistics_json, true},
    Attribute{"pnfsrdma.status", &MountStatus::status_json, false},
    Attribute{"pnfsrdma.metrics", &MountStatus::metrics_text, false},
};

// The same under "system.": for "user." attributes the kernel first looks whether the caller may read the
// root, and asks for its attributes when it has none it may still believe: a call to the MDS, for a look at
// the counters. Of "system." attributes it leaves the permission to the file system.
constexpr std::string_view kUserPrefix = "user.";
constexpr std::string_view kSystemPrefix = "system.";

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : {kUserPrefix, kSystemPrefix}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

const Attribute* find(std::string_view name) {
  const std::string_view wanted = without_prefix(name);
  const auto* found = std::ranges::find(kAttributes, wanted, &Attribute::name);
  return found == kAttributes.end() ? nullptr : found;
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

}  // namespace

void FileSystem::getxattr(fuse_req_t request, fuse_ino_t node, const char* name, size_t size) {
  const Attribute* const wanted = node == kRootNode ? find(name) : nullptr;
  if (wanted == nullptr) {
    fuse_reply_err(request, ENOTSUP);
    return;
  }
  reply_text(request, (parts_.status.*wanted->text)(), size);
}

void FileSystem::listxattr(fuse_req_t request, fuse_ino_t node, size_t size) {
  std::string names;
  if (node == kRootNode) {
    for (const Attribute& attribute : kAttributes) {
      if (attribute.listed) names.append(kUserPrefix).append(attribute.name).push_back('\0');
    }
  }
  reply_text(request, names, size);
}

void FileSystem::statfs(fuse_req_t request) {
  using nfs4::Attribute;
  const nfs4::Bitmap wanted = nfs4::Bitmap::of(
      Attribute::kFilesAvailable, Attribute::kFilesFree, Attribute::kFilesTotal, Attribute::kMaxName,
      Attribute::kSpaceAvailable, Attribute::kSpaceFree, Attribute::kSpaceTotal);
  initiator::CompoundReply reply;
  const int error =
      call(request,
           {nfs4::PutFileHandleArguments{parts_.inodes.root()->handle}, nfs4::GetAttributesArguments{wanted}},
           reply, false, parts_.clock.now() + kUmountPatience);
  const auto* result = reply.result<nfs4::GetAttributesResponse>(1);
  if (error != 0 || result == nullptr) {
    fuse_reply_err(request, error != 0 ? error : EIO);
    return;
  }
  const nfs4::Attributes& attributes = result->attributes;
  constexpr uint64_t kBlock = 4096;
  struct statvfs status{};
  status.f_bsize = status.f_frsize = kBlock;
  status.f_blocks = attributes.space_total.value_or(0) / kBlock;
  status.f_bfree = attributes.space_free.value_or(0) / kBlock;
  status.f_bavail = attributes.space_available.value_or(0) / kBlock;
  status.f_files = attributes.files_total.value_or(0);
  status.f_ffree = attributes.files_free.value_or(0);
  status.f_favail = attributes.files_available.value_or(0);
  status.f_namemax = attributes.max_name.value_or(255);
  fuse_reply_statfs(request, &status);
}

}  // namespace pnfsrdma::fuse_client
