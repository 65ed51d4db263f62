// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>

#include <cerrno>

#include "fuse-client/file_system.h"

namespace pnfsrdma::fuse_client {

// Of the file itself: in a quota tree its size and room are the tree's.
void FileSystem::statfs(fuse_req_t request, fuse_ino_t node) {
  using nfs4::Attribute;
  const nfs4::Bitmap wanted = nfs4::Bitmap::of(
      Attribute::kFilesAvailable, Attribute::kFilesFree, Attribute::kFilesTotal, Attribute::kMaxName,
      Attribute::kSpaceAvailable, Attribute::kSpaceFree, Attribute::kSpaceTotal);
  const std::shared_ptr<Inode> root = parts_.inodes.root();
  const nfs4::FileHandle handle = parts_.inodes.handle_of(node).value_or(root->handle);
  initiator::CompoundReply reply;
  const auto ask = [&](const nfs4::FileHandle& of) {
    return call(request, {nfs4::PutFileHandleArguments{of}, nfs4::GetAttributesArguments{wanted}}, reply,
                false, parts_.clock.now() + kUmountPatience);
  };
  int error = ask(handle);
  // It was removed, and is open still: the file system is there.
  if (error == ESTALE && handle != root->handle) error = ask(root->handle);
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
