// SPDX-License-Identifier: Apache-2.0
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstdio>

#include "fuse-client/file_system.h"
#include "shared/base/random.h"
#include "shared/client/server.h"

// What changes the namespace: mknod, mkdir, symlink, link, unlink, rmdir, rename; and readlink.
namespace pnfsrdma::fuse_client {

// CREATE of everything but regular files: PUTFH, SAVEFH, CREATE, GETFH, GETATTR; RESTOREFH, GETATTR of the
// directory.
void FileSystem::make(fuse_req_t request, fuse_ino_t parent, const char* name, nfs4::CreateType type,
                      const nfs4::Attributes& mode) {
  nfs4::CreateArguments create;
  create.type = std::move(type);
  create.name = name;
  create.attributes = mode;
  const Question question = ask(nullptr);
  CompoundReply reply;
  const int error =
      call(request,
           {nfs4::PutFileHandleArguments{inode(parent)->handle}, nfs4::SaveFileHandleArguments{},
            std::move(create), nfs4::GetFileHandleArguments{},
            nfs4::GetAttributesArguments{client::stat_attributes()}, nfs4::RestoreFileHandleArguments{},
            nfs4::GetAttributesArguments{client::stat_attributes()}},
           reply, true);
  const auto* created = reply.result<nfs4::CreateResponse>(2);
  learn_names(*inode(parent), created ? &created->change : nullptr,
              [&](DirectoryNames& names) { names.added(name, created->change); });
  names_changed({{inode(parent), 6}}, question, reply);
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  const auto* handle = reply.result<nfs4::GetFileHandleResponse>(3);
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(4);
  auto entry = make_entry(question, handle ? &handle->object : nullptr,
                          attributes ? &attributes->attributes : nullptr);
  if (entry) named(*entry, inode(parent), name, created->change);
  // A new directory has no names.
  if (entry && entry->inode->has_type(S_IFDIR)) entry->inode->names_complete({}, entry->attributes.change);
  reply_entry(request, entry);
}

void FileSystem::mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kDirectory>(),
       mode_of_new(request, mode));
}

void FileSystem::symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kLink>(nfs4::LinkText(target)),
       client::mode_of_new(0777));
}

void FileSystem::mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  const nfs4::SpecialData numbers{major(device), minor(device)};
  const nfs4::Attributes attributes = mode_of_new(request, mode);
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kFifo>(), attributes);
    case S_IFSOCK:
      return make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kSocket>(), attributes);
    case S_IFBLK:
      return make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kBlock>(numbers), attributes);
    case S_IFCHR:
      return make(request, parent, name, nfs4::CreateType::make<nfs4::FileType::kCharacter>(numbers),
                  attributes);
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
  const std::shared_ptr<Inode> directory = inode(parent);
  const std::shared_ptr<Inode> removed_file = parts_.inodes.find(*directory, name);
  const Question question = ask(nullptr);
  CompoundReply reply;
  int error = call(request,
                   {nfs4::PutFileHandleArguments{directory->handle}, nfs4::RemoveArguments{name},
                    nfs4::GetAttributesArguments{client::stat_attributes()}},
                   reply, true);
  // Sent again under a new session: the first one has done it.
  if (error == ENOENT && reply.repeated) error = 0;
  const auto* removed = reply.result<nfs4::RemoveResponse>(1);
  learn_names(*directory, removed ? &removed->change : nullptr,
              [&](DirectoryNames& names) { names.removed(name, removed->change); });
  names_changed({{directory, 2}, {removed_file, std::nullopt}}, question, reply);
  if (error == 0 && removed_file) name_removed(*removed_file);
  fuse_reply_err(request, error);
}

// By this host. The delegation of a directory has gone with it.
void FileSystem::name_removed(Inode& removed) {
  removed.name_removed();
  if (removed.has_type(S_IFDIR)) parts_.delegations.lost(removed);
}

// PUTFH, SAVEFH, PUTFH, RENAME, GETATTR of the new directory; LOOKUP, GETFH, GETATTR: whose name that is, which the
// kernel does not say; RESTOREFH, GETATTR of the old one.
void FileSystem::rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
                        const char* new_name, unsigned flags) {
  const std::optional<nfs4::RenameHow> how = rename_how(flags);
  if (!how) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  if (*how == nfs4::RenameHow::kExchange)
    return exchange(request, inode(parent), name, inode(new_parent), new_name);
  constexpr size_t kRenameAt = 3, kNewDirectoryAt = 4, kMovedAt = 6, kOldDirectoryAt = 9;
  const std::shared_ptr<Inode> from = inode(parent);
  const std::shared_ptr<Inode> to = inode(new_parent);
  const std::shared_ptr<Inode> expected = parts_.inodes.find(*from, name);
  // By which it is known again where a repetition does not say whether it was done before.
  std::expected<nfs4::FileHandle, int> file = std::unexpected(0);
  if (*how == nfs4::RenameHow::kNoReplace)
    file = expected ? expected->handle : ask_handle(request, *from, name);
  const Question question = ask(expected.get());
  std::vector<Touched> touched = {{to, kNewDirectoryAt}};
  if (from != to) touched.push_back({from, kOldDirectoryAt});
  std::shared_ptr<Inode> replaced;
  if (!parts_.names.lacks(*to, new_name, question.asked_at)) {
    replaced = parts_.inodes.find(*to, new_name);
    touched.push_back({replaced, std::nullopt});
  }
  CompoundReply reply;
  int error =
      call(request,
           {nfs4::PutFileHandleArguments{from->handle}, nfs4::SaveFileHandleArguments{},
            nfs4::PutFileHandleArguments{to->handle},
            nfs4::RenameArguments{name, nfs4::to_new_name({new_name, *how})},
            nfs4::GetAttributesArguments{client::stat_attributes()}, nfs4::LookupArguments{new_name},
            nfs4::GetFileHandleArguments{}, nfs4::GetAttributesArguments{client::stat_attributes()},
            nfs4::RestoreFileHandleArguments{}, nfs4::GetAttributesArguments{client::stat_attributes()}},
           reply, true);
  const auto* renamed = reply.result<nfs4::RenameResponse>(kRenameAt);
  bool was_done = reply.repeated && error == ENOENT;
  if (file && reply.repeated && (error == ENOENT || error == EEXIST))
    was_done = has_moved(request, *file, *from, name, *to, new_name);
  if (renamed != nullptr || was_done) error = 0;
  if (error == 0 && replaced && replaced != expected) name_removed(*replaced);
  learn_rename(from, name, to, new_name, renamed);
  const auto* handle = reply.result<nfs4::GetFileHandleResponse>(kMovedAt);
  const std::shared_ptr<Inode> moved = handle != nullptr ? parts_.inodes.find(handle->object) : nullptr;
  if (!moved || (expected && expected != moved)) touched.push_back({expected, std::nullopt});
  const uint64_t number = names_changed(touched, question, reply);
  if (moved) {
    named(*moved, to, new_name, renamed->target);
    const bool alone = moved->name_changed(question.name_changes, number);
    const auto* attributes = reply.result<nfs4::GetAttributesResponse>(kMovedAt + 1);
    if (alone && moved == expected && attributes != nullptr)
      learn_moved(*moved, question, number, attributes->attributes, *renamed);
  }
  fuse_reply_err(request, error);
}

// NFSv4 has no RENAME that refuses an existing target or exchanges two, and nothing made of several operations is
// atomic: a server of ours is asked by words of its own.
std::optional<nfs4::RenameHow> FileSystem::rename_how(unsigned flags) const {
  if (flags == 0) return nfs4::RenameHow::kReplace;
  if (!client::knows_rename_words(parts_.session.implementation())) return std::nullopt;
  if (flags == RENAME_NOREPLACE) return nfs4::RenameHow::kNoReplace;
  if (flags == RENAME_EXCHANGE) return nfs4::RenameHow::kExchange;
  return std::nullopt;
}

bool FileSystem::has_moved(fuse_req_t request, const nfs4::FileHandle& file, const Inode& from,
                           std::string_view name, const Inode& to, std::string_view new_name) {
  return ask_handle(request, to, new_name) == file && ask_handle(request, from, name) != file;
}

void FileSystem::learn_moved(Inode& moved, const Question& asked, uint64_t number,
                             const nfs4::Attributes& said, const nfs4::RenameResult& renamed) {
  const auto attributes = client::to_file_attributes(said);
  if (!attributes) return;
  Question answered = asked;
  answered.name_changes = number;
  // Between two names of one file nothing moves.
  const bool has_moved = renamed.target.before != renamed.target.after;
  (void)learn(moved, answered, *attributes, has_moved);
}

void FileSystem::learn_rename(const std::shared_ptr<Inode>& from, std::string_view name,
                              const std::shared_ptr<Inode>& to, std::string_view new_name,
                              const nfs4::RenameResult* renamed) {
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
  const std::shared_ptr<Inode> directory = inode(new_parent);
  CompoundReply reply;
  Question question = ask(file.get());
  const int error =
      call(request,
           {nfs4::PutFileHandleArguments{file->handle}, nfs4::SaveFileHandleArguments{},
            nfs4::PutFileHandleArguments{directory->handle}, nfs4::LinkArguments{new_name},
            nfs4::GetAttributesArguments{client::stat_attributes()}, nfs4::RestoreFileHandleArguments{},
            nfs4::GetAttributesArguments{client::stat_attributes()}},
           reply, true);
  const auto* linked = reply.result<nfs4::LinkResponse>(3);
  learn_names(*directory, linked ? &linked->change : nullptr,
              [&](DirectoryNames& names) { names.added(new_name, linked->change); });
  const uint64_t number = names_changed({{directory, 4}}, question, reply);
  if (file->name_changed(question.name_changes, number)) question.name_changes = number;
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(6);
  auto entry = make_entry(question, &file->handle, attributes ? &attributes->attributes : nullptr);
  if (entry) named(*entry, directory, new_name, linked->change);
  reply_entry(request, entry);
}

}  // namespace pnfsrdma::fuse_client
