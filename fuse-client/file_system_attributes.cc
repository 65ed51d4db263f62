// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "fuse-client/birth_question.h"
#include "fuse-client/file_system.h"
#include "fuse-client/set_attributes.h"
#include "shared/nfs4/status_errno.h"

// lookup, forget, getattr, setattr, access.
namespace pnfsrdma::fuse_client {

using initiator::CompoundReply;

// PUTFH, GETATTR of the directory, LOOKUP, GETFH, GETATTR; 0 calls for a name that is known, or known not to be
// there: of what a rename would replace the kernel always asks. It gets no negative entries: when they end is known
// here. The directory's attributes come first: a name that somebody makes behind the LOOKUP makes them old.
void FileSystem::lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const std::string_view component = name;
  if (component == "." || component == "..") return look_up_node(request, parent, component == "..");
  const std::shared_ptr<Inode> directory = inode(parent);
  const auto known = [&] {
    const SteadyTime now = parts_.clock.now();
    return known_entry(*directory, parts_.names.find(*directory, name, now), now);
  };
  auto entry = known();
  const SteadyTime now = parts_.clock.now();
  if (!entry && parts_.names.is_known(*directory, name, now) && directory->lapses_in_a_row(now) &&
      refresh_page(request, directory, name)) {
    entry = known();
  }
  if (entry) return reply_entry(request, *entry);
  const std::expected<Entry, int> asked = parts_.names.lacks(*directory, name, now)
                                              ? std::unexpected(ENOENT)
                                              : look_up_at_server(request, directory, name);
  // There is nothing to open a second time.
  if (!asked) (void)second_opens_.take(fuse_req_ctx(request)->pid);
  reply_entry(request, asked);
}

std::expected<FileSystem::Entry, int> FileSystem::look_up_at_server(fuse_req_t request,
                                                                    const std::shared_ptr<Inode>& directory,
                                                                    const char* name) {
  const DirectoryCall called = call_directory(
      request, directory, Inode::AskedFor::kName,
      {nfs4::GetAttributesArguments{client::stat_attributes()}, nfs4::LookupArguments{name},
       nfs4::GetFileHandleArguments{}, nfs4::GetAttributesArguments{client::stat_attributes()}});
  learn_directory(*directory, called.question, called.reply, called.at);
  const auto* before = called.reply.result<nfs4::GetAttributesResponse>(called.at);
  const std::optional<uint64_t> change = before != nullptr ? before->attributes.change : std::nullopt;
  if (called.error == ENOENT && change) directory->name_is_absent(name, *change);
  if (called.error == ESTALE) handle_ended(*directory);
  if (called.error != 0) return std::unexpected(called.error);
  const auto* handle = called.reply.result<nfs4::GetFileHandleResponse>(called.at + 2);
  const auto* attributes = called.reply.result<nfs4::GetAttributesResponse>(called.at + 3);
  auto entry = make_entry(called.question, handle ? &handle->object : nullptr,
                          attributes ? &attributes->attributes : nullptr);
  if (entry) {
    entry->inode->found_as(*directory, name, parts_.clock.now() + parts_.options.attributes.directory_min);
    named(*entry, directory, name,
          {.atomic = change.has_value(), .before = change.value_or(0), .after = change.value_or(0)});
  }
  return entry;
}

// open_by_handle_at(2): a file by a number that the kernel has forgotten, or the directory above one.
void FileSystem::look_up_node(fuse_req_t request, fuse_ino_t node, bool above) {
  const std::optional<nfs4::FileHandle> known = parts_.inodes.handle_of(node);
  // Above the root of the mount is nothing of ours.
  if (!known || (above && node == kRootNode)) {
    fuse_reply_err(request, ESTALE);
    return;
  }
  Operations operations{nfs4::PutFileHandleArguments{*known}};
  if (above) operations.emplace_back(nfs4::LookupParentArguments{});
  operations.emplace_back(nfs4::GetFileHandleArguments{});
  operations.emplace_back(nfs4::GetAttributesArguments{client::stat_attributes()});
  const size_t at = operations.size() - 2;
  const Question question = ask(nullptr);
  CompoundReply reply;
  if (const int error = call(request, std::move(operations), reply); error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  const auto* said = reply.result<nfs4::GetFileHandleResponse>(at);
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(at + 1);
  // A server may say another handle for the same file; the number belongs to the one that is known.
  const nfs4::FileHandle* const handle = above ? (said ? &said->object : nullptr) : &*known;
  reply_entry(request, make_entry(question, handle, attributes ? &attributes->attributes : nullptr));
}

void FileSystem::forget(fuse_req_t request, fuse_ino_t node, uint64_t lookups) {
  forget_lookups(node, lookups);
  fuse_reply_none(request);
}

void FileSystem::forget_multi(fuse_req_t request, size_t count, fuse_forget_data* forgets) {
  for (size_t i = 0; i < count; ++i) forget_lookups(forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(request);
}

void FileSystem::forget_lookups(fuse_ino_t node, uint64_t lookups) {
  parts_.inodes.forget(node, lookups);
  give_back_gone();
}

void FileSystem::give_back_gone() {
  for (const auto& gone : parts_.inodes.take_gone()) parts_.delegations.end(gone);
}

void FileSystem::getattr(fuse_req_t request, fuse_ino_t node, bool by_read) {
  const std::shared_ptr<Inode> file = inode(node);
  BirthQuestion* const birth = BirthQuestion::current();
  const bool birth_is_missing = birth != nullptr && !file->knows_birth();
  if (birth != nullptr) birth->answer(file->birth());
  const auto known = birth_is_missing ? std::nullopt : beliefs_.believed(*file, parts_.clock.now());
  if (known) {
    const client::FileAttributes shown = Beliefs::with_local_view(*file, known->attributes);
    file->told_kernel(shown, parts_.clock.now());
    reply_attributes(request, *file, shown.status, static_cast<double>(known->left.count()) / 1000.0,
                     by_read);
    return;
  }
  const Question question = ask(file.get());
  CompoundReply reply;
  // The mount point itself: what was known last will do when the server is silent.
  const bool is_root = node == FUSE_ROOT_ID;
  const int error = call(request,
                         {nfs4::PutFileHandleArguments{file->handle},
                          nfs4::GetAttributesArguments{birth_is_missing ? client::birth_attributes()
                                                                        : client::stat_attributes()}},
                         reply, false, is_root ? question.asked_at + kUmountPatience : SteadyTime::max());
  if (const auto known = file->last_known(); is_root && error == ETIMEDOUT && known) {
    fuse_reply_attr(request, &known->status, 1.0);
    return;
  }
  // The server keeps no removed directory for those who have it open or are in it.
  if (const auto known = file->last_known(); known && error == ESTALE && file->may_outlive_its_name()) {
    struct stat removed = known->status;
    removed.st_nlink = 0;
    removed.st_size = 0;
    fuse_reply_attr(request, &removed, 0);
    return;
  }
  const auto* result = reply.result<nfs4::GetAttributesResponse>(1);
  if (error != 0 || result == nullptr) {
    if (error == ESTALE) file->expire();  // the kernel looks the path up again
    fuse_reply_err(request, error != 0 ? error : EIO);
    return;
  }
  const auto attributes = client::to_file_attributes(result->attributes);
  if (!attributes) {
    fuse_reply_err(request, nfs4::to_errno(attributes.error()));
    return;
  }
  if (birth_is_missing) {
    file->born(client::birth_of(result->attributes));
    birth->answer(file->birth());
  }
  const Shown shown = take_in(*file, question, *attributes);
  reply_attributes(request, *file, shown.attributes.status, shown.timeout, by_read);
}

// An answer that is overtaken by an invalidation the kernel shows and does not take in (Linux 5.8): so pages
// that miss nothing but our own writes survive a stat(2).
void FileSystem::reply_attributes(fuse_req_t request, Inode& inode, struct stat status, double timeout,
                                  bool by_read) {
  if (const auto time = page_time(inode, status, by_read ? PageAsker::kReader : PageAsker::kStat)) {
    timeout = 0;
    if (by_read) {
      status.st_mtim = *time;
    } else {
      parts_.invalidator.attributes(inode.node);
    }
  }
  fuse_reply_attr(request, &status, timeout);
}

// PUTFH, [LAYOUTRETURN], SETATTR, GETATTR. The size goes with what the data path has to give back first
// (DESIGN.md section 3: truncate recalls first), so that the server need not recall from us what we are about
// to cut off.
void FileSystem::setattr(fuse_req_t request, fuse_ino_t node, const struct stat& wanted, int to_set) {
  const std::shared_ptr<Inode> file = inode(node);
  // What is deferred would change the times again behind the SETATTR.
  if (const auto data = file->data()) {
    if (const auto settled = data->settle(); !settled) {
      fuse_reply_err(request, to_number(settled.error()));
      return;
    }
  }
  const timespec page_time_before = file->page_time();
  // A layout or an open may die while we speak of it (the server was restarted, or revoked it).
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    std::expected<Shown, nfs4::Status> shown = std::unexpected(nfs4::Status::kIo);
    const int error = set_attributes(request, *file, wanted, to_set, shown);
    if (error == 0 && shown) {
      // The kernel takes this time in without a look at its pages: those that miss a change of another host,
      // of which this answer was the first to tell, go at the next read.
      struct stat& status = shown->attributes.status;
      if (keeps_pages_ && S_ISREG(status.st_mode) && !is_same_time(page_time_before, status.st_mtim)) {
        status.st_mtim = page_time_before;
        shown->timeout = 0;
      }
      fuse_reply_attr(request, &status, shown->timeout);
      return;
    }
    if (error == 0 && initiator::is_lost_state(shown.error()) && tries < kTries) continue;
    // The server squashes root. It does the same by itself when it gets what was written.
    const bool refused =
        error == 0 && (shown.error() == nfs4::Status::kPerm || shown.error() == nfs4::Status::kAccess);
    if (refused && to_set != 0 && (to_set & FUSE_SET_ATTR_SIZE) == 0 &&
        by_write_of_stranger(request, *file, wanted, to_set)) {
      to_set = 0;
      continue;
    }
    file->expire();
    fuse_reply_err(request, error != 0 ? error : nfs4::to_errno(shown.error()));
    return;
  }
}

// What a write or truncate brings along, in the name of the writer, who need not own the file: the set-id
// bits go (POSIX write(2)), and with writeback the kernel keeps the time of writing. A chmod or utimensat by
// one who does not own the file never comes here: the kernel has refused it.
bool FileSystem::by_write_of_stranger(fuse_req_t request, const Inode& file, const struct stat& wanted,
                                      int to_set) const {
  constexpr int kOfAWrite = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MTIME |
                            FUSE_SET_ATTR_CTIME | FUSE_SET_ATTR_KILL_SUID;
  if (!parts_.options.default_permissions || (to_set & ~kOfAWrite) != 0) return false;
  const auto known = file.last_known();
  const uid_t user = fuse_req_ctx(request)->uid;
  if (!known || !S_ISREG(known->status.st_mode) || user == 0 || user == known->status.st_uid) return false;
  if ((to_set & FUSE_SET_ATTR_MODE) == 0) return true;
  const mode_t now = known->status.st_mode & 07777;
  const mode_t then = wanted.st_mode & 07777;
  return (then & ~now) == 0 && (now & ~then & ~mode_t{S_ISUID | S_ISGID}) == 0;
}

// One try. Returns an errno when there was no answer, else 0; then `shown` tells what it was.
int FileSystem::set_attributes(fuse_req_t request, Inode& file, const struct stat& wanted, int to_set,
                               std::expected<Shown, nfs4::Status>& shown) {
  const std::shared_ptr<initiator::FileIo> data = file.data();
  const bool with_size = (to_set & FUSE_SET_ATTR_SIZE) != 0;
  if (with_size) file.data_changes();
  const auto new_size = static_cast<uint64_t>(wanted.st_size);
  nfs4::SetAttributesArguments set;
  set.attributes = to_set_attributes(wanted, to_set);
  initiator::Credential who = credential(request);
  if (by_write_of_stranger(request, file, wanted, to_set)) {
    // With a size the server does the rest by itself.
    if (with_size) {
      set.attributes.mode.reset();
      set.attributes.time_modify_set.reset();
    } else {
      who = {};
    }
  }
  Operations operations = {nfs4::PutFileHandleArguments{file.handle}};
  std::optional<size_t> returned_at;
  if (data && with_size) {
    auto layout_return = data->truncating(new_size);
    if (!layout_return) return to_number(layout_return.error());
    if (*layout_return) {
      returned_at = operations.size();
      operations.emplace_back(std::move(**layout_return));
    }
  }
  if (with_size) {
    if (const auto open = file.open_state(true)) set.stateid = open->stateid;
  }
  constexpr int kRights = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
  const bool sets_rights = (to_set & kRights) != 0;
  if (sets_rights) file.rights_changed(parts_.clock.now());
  const nfs4::Stateid stateid = set.stateid;
  const bool moves_change_once = !with_size && !set.attributes.mask().none();
  const size_t set_at = operations.size();
  operations.emplace_back(std::move(set));
  operations.emplace_back(nfs4::GetAttributesArguments{client::stat_attributes()});

  const std::function take_in_return = [&](const CompoundReply& so_far) {
    const auto* result = returned_at ? so_far.result<nfs4::LayoutReturnResponse>(*returned_at) : nullptr;
    if (result != nullptr) data->layout_returned(*result);
  };
  Question question = ask(&file);
  CompoundReply reply;
  auto answer = parts_.session.call(std::move(operations), who,
                                    {.cache_reply = true, .on_repetition = &take_in_return});
  // Whatever the answer is; an OPEN that was asked meanwhile may have come before it at the server.
  if (sets_rights) file.rights_changed(parts_.clock.now());
  const int error = error_of(answer);
  if (answer) reply = std::move(*answer);
  const bool done = reply.succeeded(set_at);
  if (data && with_size) {
    take_in_return(reply);
    question.data_version = data->truncated(new_size, done);
    // It was the LAYOUTRETURN: nothing of the file's layouts lives at the server.
    const bool at_return = returned_at && reply.results.size() == *returned_at + 1;
    if (at_return && initiator::is_lost_state(reply.status)) data->layouts_refused(reply.status);
  }
  const auto* result = reply.result<nfs4::GetAttributesResponse>(set_at + 1);
  if (!done || result == nullptr) {
    if (reply.results.empty()) return error != 0 ? error : EIO;
    const bool at_set = reply.results.size() == set_at + 1 && initiator::is_lost_state(reply.status);
    if (const auto open = file.open_state(true); at_set && open && open->stateid.other == stateid.other)
      parts_.session.renew_opens();
    shown = std::unexpected(reply.ok() ? nfs4::Status::kIo : reply.status);
    return 0;
  }
  const auto attributes = client::to_file_attributes(result->attributes);
  if (attributes) {
    shown = take_in(file, question, *attributes, moves_change_once);
  } else {
    shown = std::unexpected(attributes.error());
  }
  return 0;
}

// Only asked without default_permissions: with it the kernel decides by the mode.
void FileSystem::access(fuse_req_t request, fuse_ino_t node, int mask) {
  const std::shared_ptr<Inode> file = inode(node);
  const bool is_directory = file->has_type(S_IFDIR);
  uint32_t wanted = 0;
  if ((mask & R_OK) != 0) wanted |= nfs4::kAccessRead;
  if ((mask & W_OK) != 0) wanted |= nfs4::kAccessModify | nfs4::kAccessExtend;
  if ((mask & X_OK) != 0) wanted |= is_directory ? nfs4::kAccessLookup : nfs4::kAccessExecute;
  CompoundReply reply;
  const int error =
      call(request, {nfs4::PutFileHandleArguments{file->handle}, nfs4::AccessArguments{wanted}}, reply);
  const auto* result = reply.result<nfs4::AccessResponse>(1);
  if (error != 0 || result == nullptr) {
    fuse_reply_err(request, error != 0 ? error : EIO);
    return;
  }
  const bool granted = (result->access & wanted & result->supported) == (wanted & result->supported);
  fuse_reply_err(request, granted ? 0 : EACCES);
}

}  // namespace pnfsrdma::fuse_client
