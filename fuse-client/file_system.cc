// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/file_system.h"

#include <algorithm>
#include <cerrno>

#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::fuse_client {
namespace {

double seconds_of(Milliseconds duration) {
  return static_cast<double>(duration.count()) / 1000.0;
}

}  // namespace

int to_number(const Error& error) {
  switch (error.number()) {
    case 0:
      return EIO;
    case ESHUTDOWN:
    case EPROTO:
    case EMSGSIZE:
      return EIO;  // applications do not know these of files
    default:
      return error.number();
  }
}

int FileSystem::error_of(const Result<initiator::CompoundReply>& reply) {
  if (!reply) return to_number(reply.error());
  return nfs4::to_errno(reply->status);
}

int FileSystem::call(fuse_req_t request, Operations operations, initiator::CompoundReply& reply, bool changes,
                     SteadyTime deadline) {
  initiator::CallOptions options;
  options.deadline = deadline;
  options.cache_reply = changes;
  return call(request, std::move(operations), reply, options);
}

int FileSystem::call(fuse_req_t request, Operations operations, initiator::CompoundReply& reply,
                     const initiator::CallOptions& options) {
  Result<initiator::CompoundReply> result =
      parts_.session.call(std::move(operations), credential(request), options);
  const int error = error_of(result);
  if (result) reply = std::move(*result);
  return error;
}

initiator::Credential FileSystem::credential(fuse_req_t request) {
  const fuse_ctx* caller = fuse_req_ctx(request);
  return parts_.callers.credential(caller->uid, caller->gid, caller->pid);
}

FileSystem::Shown FileSystem::take_in(Inode& inode, const Question& question,
                                      const client::FileAttributes& attributes, bool of_own_change) {
  const Milliseconds believed = learn(inode, question, attributes, of_own_change);
  Shown shown{Beliefs::with_local_view(inode, attributes), seconds_of(believed)};
  inode.told_kernel(shown.attributes, parts_.clock.now());
  return shown;
}

FileSystem::Shown FileSystem::show(Inode& inode, const Inode::Believed& believed) const {
  Shown shown{Beliefs::with_local_view(inode, believed.attributes), seconds_of(believed.left)};
  inode.told_kernel(shown.attributes, parts_.clock.now());
  return shown;
}

Milliseconds FileSystem::learn(Inode& inode, const Question& question,
                               const client::FileAttributes& attributes, bool of_own_change) {
  const Milliseconds believed = beliefs_.learn(inode, question, attributes, of_own_change);
  if (inode.listing_is_old()) parts_.invalidator.pages(inode.node);
  return believed;
}

std::optional<timespec> FileSystem::page_time(Inode& inode, const struct stat& status,
                                              PageAsker asker) const {
  if (!keeps_pages_ || !S_ISREG(status.st_mode)) return std::nullopt;
  return inode.page_time_instead_of(status.st_mtim, static_cast<uint64_t>(status.st_size), asker);
}

std::expected<FileSystem::Entry, int> FileSystem::make_entry(const Question& question,
                                                             const nfs4::FileHandle* handle,
                                                             const nfs4::Attributes* attributes) {
  if (handle == nullptr || attributes == nullptr) return std::unexpected(EIO);
  const auto file = client::to_file_attributes(*attributes);
  if (!file) return std::unexpected(nfs4::to_errno(file.error()));
  std::shared_ptr<Inode> inode = parts_.inodes.look_up(*handle, file->status.st_ino);
  const Shown shown = take_in(*inode, question, *file);
  return entry_of(std::move(inode), shown);
}

FileSystem::Entry FileSystem::entry_of(std::shared_ptr<Inode> inode, const Shown& shown,
                                       SteadyTime::duration named_for) const {
  Entry entry{std::move(inode), {}, shown.attributes};
  entry.param.ino = entry.inode->node;
  entry.param.generation = parts_.inodes.generation_of(*entry.inode);
  entry.param.attr = shown.attributes.status;
  entry.param.attr_timeout = shown.timeout;
  // Whoever wants to see the time asks for it.
  if (const auto time = page_time(*entry.inode, entry.param.attr, PageAsker::kName)) {
    entry.param.attr.st_mtim = *time;
    entry.param.attr_timeout = 0;
  }
  // How long a name may be believed is a matter of its directory.
  const std::chrono::duration<double> left = parts_.options.attributes.directory_min - named_for;
  if (parts_.options.lookup_cache != LookupCache::kNone)
    entry.param.entry_timeout = std::max(left.count(), 0.0);
  return entry;
}

std::optional<FileSystem::Entry> FileSystem::known_entry(const Inode& directory,
                                                         const std::optional<KnownNames::Known>& known,
                                                         SteadyTime now) {
  if (!known) return std::nullopt;
  const std::shared_ptr<Inode>& inode = known->inode;
  const std::shared_ptr<Inode> counted = parts_.inodes.look_up(inode->handle, inode->id);
  if (counted != inode) {  // forgotten meanwhile
    forget_lookups(counted->node, 1);
    return std::nullopt;
  }
  return entry_of(inode, show(*inode, known->attributes), now - known->named_at);
}

void FileSystem::handle_ended(Inode& asked) {
  asked.expire();
  parts_.names.handle_ended(parts_.clock.now());
}

void FileSystem::named(Inode& inode, const std::shared_ptr<Inode>& directory, std::string_view name,
                       const nfs4::ChangeInfo& done) {
  parts_.names.found(inode, directory, name, done.atomic ? std::optional(done.after) : std::nullopt);
}

void FileSystem::named(Entry& entry, const std::shared_ptr<Inode>& directory, std::string_view name,
                       const nfs4::ChangeInfo& done) {
  named(*entry.inode, directory, name, done);
}

void FileSystem::reply_entry(fuse_req_t request, const std::expected<Entry, int>& entry) {
  if (!entry) {
    fuse_reply_err(request, entry.error());
    return;
  }
  // Interrupted meanwhile: the kernel did not take it, so it will not forget it either.
  if (fuse_reply_entry(request, &entry->param) == -ENOENT) forget_lookups(entry->param.ino, 1);
}

uint64_t FileSystem::names_changed(const std::vector<Touched>& touched, const Question& asked,
                                   const CompoundReply& reply) {
  Question answered = asked;
  answered.name_changes = beliefs_.name_changed();
  for (const Touched& one : touched) {
    if (one.inode) one.inode->forget_listing();
    if (!one.inode) {
      beliefs_.link_lost(answered.name_changes);
    } else if (one.inode->name_changed(asked.name_changes, answered.name_changes) && one.at) {
      learn_directory(*one.inode, answered, reply, *one.at);
    }
  }
  return answered.name_changes;
}

void FileSystem::learn_names(Inode& directory, const nfs4::ChangeInfo* done,
                             const std::function<void(DirectoryNames&)>& change) {
  if (done != nullptr) {
    directory.change_names(change);
  } else {
    directory.forget_names();
  }
}

void FileSystem::learn_directory(Inode& directory, const Question& asked, const CompoundReply& reply,
                                 size_t at) {
  const auto* result = reply.result<nfs4::GetAttributesResponse>(at);
  if (result == nullptr) return;
  if (const auto attributes = client::to_file_attributes(result->attributes)) {
    (void)directory.learn(*attributes, asked.asked_at, parts_.options.attributes,
                          Inode::Versions{0, asked.name_changes});
    if (directory.listing_is_old()) parts_.invalidator.pages(directory.node);
  }
}

}  // namespace pnfsrdma::fuse_client
