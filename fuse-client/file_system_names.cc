// SPDX-License-Identifier: Apache-2.0
#include <sys/sysmacros.h>

#include <cerrno>

#include "fuse-client/file_system.h"
#include "shared/base/random.h"

// What changes the namespace: mknod, mkdir, symlink, link, unlink, rmdir, rename; and readlink.
namespace pnfsrdma::fuse_client {

// CREATE of everything but regular files: PUTFH, SAVEFH, CREATE, GETFH, GETATTR; RESTOREFH, GETATTR of the
// directory.
void FileSystem::make(fuse_req_t request, fuse_ino_t parent, const char* name, nfs4::CreateType type,
                      mode_t mode) {
  nfs4::CreateArguments create;
  create.type = std::move(type);
  create.name = name;
  create.attributes = mode_of_new(mode);
  const Question question = ask(nullptr);
  CompoundReply reply;
  const int error = call(
      request,
      {nfs4::PutFileHandleArguments{inode(parent)->handle}, nfs4::SaveFileHandleArguments{},
       std::move(create), nfs4::GetFileHandleArguments{}, nfs4::GetAttributesArguments{stat_attributes()},
       nfs4::RestoreFileHandleArguments{}, nfs4::GetAttributesArguments{stat_attributes()}},
      reply, true);
  name_added(parent, question, reply, 6);
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  const auto* handle = reply.result<nfs4::GetFileHandleResponse>(3);
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(4);
  reply_entry(request, make_entry(question, handle ? &handle->object : nullptr,
                                  attributes ? &attributes->attributes : nullptr));
}

void FileSystem::mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kDirectory>(), mode);
}

void FileSystem::symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kLink>(nfs4::LinkText(target)), 0777);
}

void FileSystem::mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  const nfs4::SpecialData numbers{major(device), minor(device)};
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kFifo>(), mode);
    case S_IFSOCK:
      return make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kSocket>(), mode);
    case S_IFBLK:
      return make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kBlock>(numbers), mode);
    case S_IFCHR:
      return make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kCharacter>(numbers), mode);
    case S_IFREG:
    case 0:
      return make_regular(request, parent, name, mode);
    default:
      fuse_reply_err(request, EINVAL);
  }
}

void FileSystem::readlink(fuse_req_t request, fuse_ino_t node) {
  CompoundReply reply;
  const int error =
      call(request, {nfs4::PutFileHandleArguments{inode(node)->handle}, nfs4::ReadLinkArguments{}}, reply);
  const auto* result = reply.result<nfs4::ReadLinkResponse>(1);
  if (error != 0 || result == nullptr) {
    fuse_reply_err(request, error != 0 ? error : EIO);
    return;
  }
  fuse_reply_readlink(request, result->link.c_str());
}

// REMOVE is for files and directories alike; the kernel has checked which it is. An open file lives on at the
// server (OPEN4_RESULT_PRESERVE_UNLINKED), so there is no renaming to hidden names. PUTFH, REMOVE, GETATTR.
void FileSystem::remove(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Question question = ask(nullptr);
  CompoundReply reply;
  int error = call(request,
                   {nfs4::PutFileHandleArguments{inode(parent)->handle}, nfs4::RemoveArguments{name},
                    nfs4::GetAttributesArguments{stat_attributes()}},
                   reply, true);
  // Sent again under a new session: the first one has done it.
  if (error == ENOENT && reply.repeated) error = 0;
  namespace_changed(parent, question, reply, 2);
  fuse_reply_err(request, error);
}

// PUTFH, SAVEFH, PUTFH, RENAME; LOOKUP, GETFH: whose name that is, which the kernel does not say.
void FileSystem::rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
                        const char* new_name, unsigned flags) {
  // NFSv4 has no RENAME that refuses an existing target or exchanges two; nothing made of several operations
  // is atomic.
  if (flags != 0) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  constexpr size_t kRenameAt = 3;
  CompoundReply reply;
  int error =
      call(request,
           {nfs4::PutFileHandleArguments{inode(parent)->handle}, nfs4::SaveFileHandleArguments{},
            nfs4::PutFileHandleArguments{inode(new_parent)->handle}, nfs4::RenameArguments{name, new_name},
            nfs4::LookupArguments{new_name}, nfs4::GetFileHandleArguments{}},
           reply, true);
  if (reply.succeeded(kRenameAt)) {
    error = 0;
    const auto* moved = reply.result<nfs4::GetFileHandleResponse>(kRenameAt + 2);
    const auto known = moved != nullptr ? parts_.inodes.find(moved->object) : nullptr;
    if (known) known->named(inode(new_parent), new_name);
  }
  if (error == ENOENT && reply.repeated) error = 0;
  namespace_changed(parent);
  namespace_changed(new_parent);
  fuse_reply_err(request, error);
}

// PUTFH, SAVEFH, PUTFH, LINK, RESTOREFH, GETATTR.
void FileSystem::link(fuse_req_t request, fuse_ino_t node, fuse_ino_t new_parent, const char* new_name) {
  const std::shared_ptr<Inode> file = inode(node);
  CompoundReply reply;
  Question question = ask(file.get());
  const int error =
      call(request,
           {nfs4::PutFileHandleArguments{file->handle}, nfs4::SaveFileHandleArguments{},
            nfs4::PutFileHandleArguments{inode(new_parent)->handle}, nfs4::LinkArguments{new_name},
            nfs4::RestoreFileHandleArguments{}, nfs4::GetAttributesArguments{stat_attributes()}},
           reply, true);
  namespace_changed(new_parent);
  question.namespace_version = namespace_version_;
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(5);
  const auto entry = make_entry(question, &file->handle, attributes ? &attributes->attributes : nullptr);
  if (entry) entry->inode->named(inode(new_parent), new_name);
  reply_entry(request, entry);
}

}  // namespace pnfsrdma::fuse_client
