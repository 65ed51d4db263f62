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
  const auto* created = reply.result<nfs4::CreateResponse>(2);
  learn_names(*inode(parent), created ? &created->change : nullptr,
              [&](DirectoryNames& names) { names.added(name, created->change); });
  name_added(parent, question, reply, 6);
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  const auto* handle = reply.result<nfs4::GetFileHandleResponse>(3);
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(4);
  const auto entry = make_entry(question, handle ? &handle->object : nullptr,
                                attributes ? &attributes->attributes : nullptr);
  // A new directory has no names.
  if (entry && entry->inode->has_type(S_IFDIR)) entry->inode->names_complete({}, entry->attributes.change);
  reply_entry(request, entry);
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
  const auto* removed = reply.result<nfs4::RemoveResponse>(1);
  learn_names(*inode(parent), removed ? &removed->change : nullptr,
              [&](DirectoryNames& names) { names.removed(name, removed->change); });
  namespace_changed({{parent, 2}}, question, reply);
  fuse_reply_err(request, error);
}

// PUTFH, SAVEFH, PUTFH, RENAME, GETATTR of the new directory; LOOKUP, GETFH: whose name that is, which the
// kernel does not say; RESTOREFH, GETATTR of the old one.
void FileSystem::rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
                        const char* new_name, unsigned flags) {
  // NFSv4 has no RENAME that refuses an existing target or exchanges two; nothing made of several operations
  // is atomic.
  if (flags != 0) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  constexpr size_t kRenameAt = 3;
  constexpr size_t kNewDirectoryAt = 4, kMovedAt = 6, kOldDirectoryAt = 8;
  Question question = ask(nullptr);
  CompoundReply reply;
  int error = call(request,
                   {nfs4::PutFileHandleArguments{inode(parent)->handle}, nfs4::SaveFileHandleArguments{},
                    nfs4::PutFileHandleArguments{inode(new_parent)->handle},
                    nfs4::RenameArguments{name, new_name}, nfs4::GetAttributesArguments{stat_attributes()},
                    nfs4::LookupArguments{new_name}, nfs4::GetFileHandleArguments{},
                    nfs4::RestoreFileHandleArguments{}, nfs4::GetAttributesArguments{stat_attributes()}},
                   reply, true);
  if (reply.succeeded(kRenameAt)) {
    error = 0;
    const auto* moved = reply.result<nfs4::GetFileHandleResponse>(kMovedAt);
    const auto known = moved != nullptr ? parts_.inodes.find(moved->object) : nullptr;
    if (known) known->named(inode(new_parent), new_name);
  }
  if (error == ENOENT && reply.repeated) error = 0;
  learn_rename(parent, name, new_parent, new_name, reply.result<nfs4::RenameResponse>(kRenameAt));
  if (parent == new_parent) {
    namespace_changed({{new_parent, kNewDirectoryAt}}, question, reply);
  } else {
    namespace_changed({{new_parent, kNewDirectoryAt}, {parent, kOldDirectoryAt}}, question, reply);
  }
  fuse_reply_err(request, error);
}

void FileSystem::learn_rename(fuse_ino_t parent, std::string_view name, fuse_ino_t new_parent,
                              std::string_view new_name, const nfs4::RenameResult* renamed) {
  const std::shared_ptr<Inode> from = inode(parent);
  const std::shared_ptr<Inode> to = inode(new_parent);
  if (from == to) {
    return learn_names(*to, renamed ? &renamed->target : nullptr,
                       [&](DirectoryNames& names) { names.renamed(name, new_name, renamed->target); });
  }
  const bool moved = renamed != nullptr && renamed->target.before != renamed->target.after;
  learn_names(*from, moved ? &renamed->source : nullptr,
              [&](DirectoryNames& names) { names.removed(name, renamed->source); });
  learn_names(*to, moved ? &renamed->target : nullptr,
              [&](DirectoryNames& names) { names.added(new_name, renamed->target); });
}

// PUTFH, SAVEFH, PUTFH, LINK, GETATTR of the directory, RESTOREFH, GETATTR.
void FileSystem::link(fuse_req_t request, fuse_ino_t node, fuse_ino_t new_parent, const char* new_name) {
  const std::shared_ptr<Inode> file = inode(node);
  CompoundReply reply;
  Question question = ask(file.get());
  const int error =
      call(request,
           {nfs4::PutFileHandleArguments{file->handle}, nfs4::SaveFileHandleArguments{},
            nfs4::PutFileHandleArguments{inode(new_parent)->handle}, nfs4::LinkArguments{new_name},
            nfs4::GetAttributesArguments{stat_attributes()}, nfs4::RestoreFileHandleArguments{},
            nfs4::GetAttributesArguments{stat_attributes()}},
           reply, true);
  const auto* linked = reply.result<nfs4::LinkResponse>(3);
  learn_names(*inode(new_parent), linked ? &linked->change : nullptr,
              [&](DirectoryNames& names) { names.added(new_name, linked->change); });
  namespace_changed({{new_parent, 4}}, question, reply);
  // Of the file there is only this answer: it has this link.
  question.namespace_version = namespace_version_;
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(6);
  const auto entry = make_entry(question, &file->handle, attributes ? &attributes->attributes : nullptr);
  if (entry) entry->inode->named(inode(new_parent), new_name);
  reply_entry(request, entry);
}

}  // namespace pnfsrdma::fuse_client
