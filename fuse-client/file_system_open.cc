// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <cerrno>

#include "fuse-client/answer_flags.h"
#include "fuse-client/file_system.h"
#include "fuse-client/ring/ring_server.h"
#include "shared/base/random.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/nfs4/status_errno.h"

// open, create, mknod of a regular file, release. The inode's one open at the server is shared by all opens
// of this mount (one open owner); each OPEN adds to its access, the last release closes it.
namespace pnfsrdma::fuse_client {

using initiator::CompoundReply;

// What an OPEN's COMPOUND has brought.
struct FileSystem::OpenAnswer {
  int error = 0;  // an errno: nothing is open
  std::optional<Question> question;
  CompoundReply reply;
  nfs4::OpenResult open;
  nfs4::Attributes attributes;
  std::optional<initiator::PendingLayout> pending;
  size_t layout_at = 0;
  bool with_read = false;     // at the same place: one or the other
  uint32_t share_access = 0;  // of the caller's open
  uint32_t opened_for = 0;    // at the server; 0: the same
  bool refused = false;       // granted, but not to this caller
  ByName by_name = ByName::kDone;

  bool reads() const { return (share_access & nfs4::kShareAccessRead) != 0; }
  bool writes() const { return (share_access & nfs4::kShareAccessWrite) != 0; }
};

namespace {

uint32_t share_access_of(int flags) {
  switch (flags & O_ACCMODE) {
    case O_WRONLY:
      return nfs4::kShareAccessWrite;
    case O_RDWR:
      return nfs4::kShareAccessBoth;
    default:
      return nfs4::kShareAccessRead;
  }
}

// Linux marks the open of execve(2) so (FMODE_EXEC).
bool is_execution(int flags) {
  constexpr int kExecution = 040;
  return (flags & kExecution) != 0;
}

// O_EXCL: EXCLUSIVE4_1, whose verifier makes a repetition harmless; else UNCHECKED4.
nfs4::OpenHow create_how(nfs4::Attributes attributes, int flags) {
  if ((flags & O_EXCL) != 0) {
    nfs4::ExclusiveCreate exclusive;
    SystemRandom().fill(exclusive.verifier);
    exclusive.attributes = std::move(attributes);
    return nfs4::OpenHow::make<nfs4::OpenType::kCreate>(
        nfs4::CreateHow::make<nfs4::CreateMode::kExclusive41>(std::move(exclusive)));
  }
  if ((flags & O_TRUNC) != 0) attributes.size = 0;
  return nfs4::OpenHow::make<nfs4::OpenType::kCreate>(
      nfs4::CreateHow::make<nfs4::CreateMode::kUnchecked>(std::move(attributes)));
}

}  // namespace

// LAYOUTGET behind the OPEN, where a layout will be of use: not for what is empty (nothing to read; small new
// files are written through the MDS, the data path asks later if they grow).
std::optional<initiator::PendingLayout> FileSystem::layout_wanted(const Inode& inode, bool for_write,
                                                                  Operations& operations) {
  const std::shared_ptr<initiator::FileIo> data = inode.data();
  // Only a hint, so what was known last will do, however old.
  const auto known = inode.last_known();
  const uint64_t size = data ? data->size() : known ? static_cast<uint64_t>(known->status.st_size) : 0;
  if (size == 0 || size < small_file_size_) return std::nullopt;
  initiator::PendingLayout pending = parts_.data_path.layout_at_open(for_write, data.get());
  if (!pending.arguments) return std::nullopt;
  operations.emplace_back(*pending.arguments);
  operations.emplace_back(nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kSize)});
  return pending;
}

// READ behind the OPEN of a small file that this mount has not read yet. Only without a data path: nothing was
// written here then that the server does not know. Else by itself, by which a layout or the kernel's pages may serve
// it.
std::optional<FirstReads::Place> FileSystem::first_read_wanted(const Inode& inode, const OpenAnswer& answer,
                                                               int flags, Operations& operations) {
  const auto known = inode.last_known();
  const uint64_t size = known ? static_cast<uint64_t>(known->status.st_size) : 0;
  const bool is_small = size > 0 && size <= FirstBytes::kSizeMax && size < small_file_size_;
  const bool is_direct = parts_.options.direct_only || (flags & O_DIRECT) != 0;
  if (!is_small || is_direct || answer.writes() || answer.question->data || inode.has_kept_pages())
    return std::nullopt;
  if (parts_.options.attributes.file_min == std::chrono::seconds(0)) return std::nullopt;
  auto place = first_reads_.enter();
  if (place) {
    operations.emplace_back(
        nfs4::ReadArguments{nfs4::Stateid::current(), 0, static_cast<uint32_t>(FirstBytes::kSizeMax)});
  }
  return place;
}

// 0 calls under a delegation; else an OPEN by name as NFSv4 means it: what the kernel knows of the name may be
// half a minute old. If it leads elsewhere the answer is ESTALE, once: then the kernel looks the path up again.
// Where it comes without a path (/proc/self/fd), or by another link, the second try is by handle.
void FileSystem::open(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  const std::shared_ptr<Inode> file = inode(node);
  const pid_t caller = fuse_req_ctx(request)->pid;
  const bool is_second = second_opens_.take(caller);
  const auto name = file->name();
  const auto look_up_again = [&] {
    second_opens_.expect(caller);
    fuse_reply_err(request, ESTALE);
  };
  if (!is_second && (file->name_is_lost() || file->has_old_name(parts_.clock.now()))) return look_up_again();
  if (!file->begin_open_if_wanted()) {
    fuse_reply_err(request, EINTR);
    return;
  }
  if (open_under_delegation(request, file, info)) return;
  std::optional<OpenAnswer> answer(try_open(request, file, name.get(), info->flags));
  if (answer->by_name == ByName::kLeadsElsewhere) {
    file->lose_name(name);
    if (!is_second) {
      opens_.close_if_last(file, file->open_failed());
      return look_up_again();
    }
  }
  if (answer->by_name != ByName::kDone) answer.emplace(try_open(request, file, nullptr, info->flags));
  if (answer->error != 0) {
    if (answer->error == ESTALE) handle_ended(*file);
    opens_.close_if_last(file, file->open_failed());
    fuse_reply_err(request, answer->error);
    return;
  }
  const Question question = *answer->question;
  if (const int failed = finish_open(request, file, question, std::move(*answer), info); failed != 0) {
    fuse_reply_err(request, failed);
    return;
  }
  // Interrupted meanwhile: there will be no release.
  if (fuse_reply_open(request, info) == -ENOENT) release(nullptr, info);
}

// FileOpens::request(), [ACCESS], [READ or LAYOUTGET].
FileSystem::OpenAnswer FileSystem::try_open(fuse_req_t request, const std::shared_ptr<Inode>& file,
                                            const Inode::Name* name, int flags) {
  OpenAnswer answer;
  answer.share_access = share_access_of(flags);
  auto [operations, open_at] =
      opens_.request(*file, name, answer.share_access, parts_.options.default_permissions);
  // A server grants a READ open to who may execute (RFC 8881, 6.2.1.3.1). That nobody else reads by it is the
  // kernel's doing, if it was asked to.
  const bool may_read_at = !parts_.options.default_permissions && answer.reads() && !is_execution(flags);
  if (may_read_at) operations.emplace_back(nfs4::AccessArguments{nfs4::kAccessRead});
  answer.question = ask(file.get());
  answer.layout_at = operations.size();
  const auto reading = first_read_wanted(*file, answer, flags, operations);
  answer.with_read = reading.has_value();
  auto pending = reading ? std::nullopt : layout_wanted(*file, answer.writes(), operations);
  if (pending) answer.pending.emplace(std::move(*pending));

  answer.error = call(request, std::move(operations), answer.reply, true);
  const CompoundReply& reply = answer.reply;
  const auto* opened = reply.result<nfs4::OpenResponse>(open_at);
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(open_at + 1);
  if (opened != nullptr && attributes != nullptr) {
    answer.error = 0;
    answer.open = *opened;
    answer.attributes = attributes->attributes;
    const auto* access = reply.result<nfs4::AccessResponse>(open_at + 2);
    answer.refused = may_read_at && (access == nullptr || (access->access & nfs4::kAccessRead) == 0);
    return answer;
  }
  if (answer.error == 0) answer.error = EIO;
  if (reply.results.empty() || reply.results.size() > open_at || name == nullptr) return answer;
  // It failed before the OPEN. Who may not search the directory has the file by other ways.
  switch (reply.status) {
    case nfs4::Status::kStale:
    case nfs4::Status::kFhExpired:
      handle_ended(*file);
      [[fallthrough]];
    case nfs4::Status::kNoEnt:
    case nfs4::Status::kNotSame:
      answer.by_name = ByName::kLeadsElsewhere;
      break;
    default:
      answer.by_name = ByName::kCannotBe;
  }
  return answer;
}

// What is new is nobody else's yet: for its writing it is asked for a delegation to write, which needs an open to read,
// too.
bool FileSystem::wants_new(int flags) const {
  return (share_access_of(flags) & nfs4::kShareAccessWrite) != 0 && parts_.options.default_permissions &&
         parts_.options.attributes.file_min > std::chrono::seconds(0);
}

// PUTFH, SAVEFH, OPEN (create), GETFH, GETATTR, and of the directory RESTOREFH, GETATTR: the kernel asks for
// its attributes next.
int FileSystem::call_create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, int flags,
                            bool delegates, CompoundReply& reply) {
  nfs4::OpenArguments open =
      delegates ? FileOpens::arguments(nfs4::kShareAccessBoth, nfs4::kShareAccessWantWriteDelegation)
                : FileOpens::arguments(share_access_of(flags));
  open.how = create_how(mode_of_new(request, mode), flags);
  open.claim = nfs4::OpenClaim::make<nfs4::ClaimType::kNull>(name);
  return call(
      request,
      {nfs4::PutFileHandleArguments{inode(parent)->handle}, nfs4::SaveFileHandleArguments{}, std::move(open),
       nfs4::GetFileHandleArguments{}, nfs4::GetAttributesArguments{client::open_attributes()},
       nfs4::RestoreFileHandleArguments{}, nfs4::GetAttributesArguments{client::stat_attributes()}},
      reply, true);
}

void FileSystem::create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
                        fuse_file_info* info) {
  (void)second_opens_.take(fuse_req_ctx(request)->pid);
  const Delegations::Creating creating(parts_.delegations);
  const Question question = ask(nullptr);
  OpenAnswer answer;
  bool delegates = wants_new(info->flags);
  answer.share_access = share_access_of(info->flags);
  int error = call_create(request, parent, name, mode, info->flags, delegates, answer.reply);
  // Somebody else has made it first, and this user may write it, not read.
  if (error == EACCES && answer.share_access == nfs4::kShareAccessWrite && std::exchange(delegates, false))
    error = call_create(request, parent, name, mode, info->flags, delegates, answer.reply);
  answer.opened_for = delegates ? nfs4::kShareAccessBoth : answer.share_access;
  const auto* opened = answer.reply.result<nfs4::OpenResponse>(2);
  learn_names(*inode(parent), opened ? &opened->change : nullptr,
              [&](DirectoryNames& names) { names.added(name, opened->change); });
  names_changed({{inode(parent), 6}}, question, answer.reply);
  const auto* handle = answer.reply.result<nfs4::GetFileHandleResponse>(3);
  const auto* attributes = answer.reply.result<nfs4::GetAttributesResponse>(4);
  if (opened == nullptr || handle == nullptr || attributes == nullptr) {
    fuse_reply_err(request, error != 0 ? error : EIO);
    return;
  }
  auto entry = make_entry(question, &handle->object, &attributes->attributes);
  if (!entry) {
    fuse_reply_err(request, entry.error());
    return;
  }
  answer.open = *opened;
  answer.attributes = attributes->attributes;
  named(*entry, inode(parent), name, opened->change);
  entry->inode->begin_open();
  if (const int failed = finish_open(request, entry->inode, question, std::move(answer), info); failed != 0) {
    forget_lookups(entry->param.ino, 1);
    fuse_reply_err(request, failed);
    return;
  }
  if (fuse_reply_create(request, &entry->param, info) == -ENOENT) {
    release(nullptr, info);
    forget_lookups(entry->param.ino, 1);
  }
}

void FileSystem::make_regular(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  const Question question = ask(nullptr);
  nfs4::OpenArguments open = FileOpens::arguments(nfs4::kShareAccessRead);
  open.how = create_how(mode_of_new(request, mode), O_EXCL);
  open.claim = nfs4::OpenClaim::make<nfs4::ClaimType::kNull>(name);
  CompoundReply reply;
  const int error =
      call(request,
           {nfs4::PutFileHandleArguments{inode(parent)->handle}, std::move(open),
            nfs4::GetFileHandleArguments{}, nfs4::GetAttributesArguments{client::stat_attributes()}},
           reply, true);
  const auto* opened = reply.result<nfs4::OpenResponse>(1);
  learn_names(*inode(parent), opened ? &opened->change : nullptr,
              [&](DirectoryNames& names) { names.added(name, opened->change); });
  names_changed({{inode(parent), std::nullopt}}, question, reply);
  const auto* handle = reply.result<nfs4::GetFileHandleResponse>(2);
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(3);
  if (opened == nullptr || handle == nullptr || attributes == nullptr) {
    fuse_reply_err(request, error != 0 ? error : EIO);
    return;
  }
  auto entry = make_entry(question, &handle->object, &attributes->attributes);
  if (!entry) {
    fuse_reply_err(request, entry.error());
    return;
  }
  named(*entry, inode(parent), name, opened->change);
  // As any other open, so that it can't cross another one's CLOSE.
  entry->inode->begin_open();
  entry->inode->opened(opened->stateid, nfs4::kShareAccessRead, credential(request));
  opens_.close_if_last(entry->inode, entry->inode->release());
  reply_entry(request, entry);
}

// The OPEN is granted: joins it to the inode, takes in attributes and layout, makes the open file. `info` is
// filled for the reply. Returns 0 or an errno (then nothing is open).
int FileSystem::finish_open(fuse_req_t request, const std::shared_ptr<Inode>& inode, const Question& question,
                            OpenAnswer answer, fuse_file_info* info) {
  FileOpens::Granted granted{answer.open, answer.attributes, answer.share_access, answer.refused, {}};
  if (answer.opened_for != 0) {
    granted.share_access = answer.opened_for;
    granted.created_for = answer.share_access;
  }
  const auto opened = opens_.granted(inode, question, granted, credential(request));
  if (!opened) return opened.error();
  auto file = std::make_unique<OpenFile>();
  file->data = opened->data;
  file->readable = answer.reads();
  file->writable = answer.writes();
  if (file->writable) inode->writer_came();
  if (const auto sizes = client::thresholds_of(answer.attributes)) {
    file->data->set_thresholds(sizes->first, sizes->second);
    small_file_size_ = sizes->first;
  }
  const auto* layout = answer.reply.result<nfs4::LayoutGetResponse>(answer.layout_at);
  const auto* behind = answer.reply.result<nfs4::GetAttributesResponse>(answer.layout_at + 1);
  if (answer.pending && layout != nullptr) {
    file->data->take_layout(std::move(*answer.pending), *layout,
                            behind != nullptr ? behind->attributes.size : std::nullopt);
  }

  if (answer.with_read && opened->is_first)
    file->first_bytes = first_bytes(question, answer, opened->attributes);
  tell_opened(inode, opened->attributes, question.asked_at, std::move(file), info);
  return 0;
}

// The file is open: makes what the kernel's descriptor stands for, and says how it may use its pages.
void FileSystem::tell_opened(const std::shared_ptr<Inode>& inode, const client::FileAttributes& attributes,
                             SteadyTime asked_at, std::unique_ptr<OpenFile> file, fuse_file_info* info) {
  file->inode = inode;
  file->append = (info->flags & O_APPEND) != 0;
  file->flags = info->flags;
  // A descriptor for ioctl(2) alone (open(2), "3"): by it nothing is read or written, and where a place of the mount is
  // bound read-only, the kernel lets it be opened.
  if ((info->flags & O_ACCMODE) == O_ACCMODE) file->readable = false;
  file->cursor = file->data->error_cursor();
  const Inode::CacheVerdict verdict = inode->at_open(attributes, asked_at);
  if (verdict.kernel_attributes_old) parts_.invalidator.attributes(inode->node);
  info->keep_cache = verdict.keep_pages ? 1 : 0;
  info->direct_io = parts_.options.direct_only || (info->flags & O_DIRECT) != 0 ? 1 : 0;
  if (info->direct_io != 0 && file->writable) direct_open_is_answered_next();
  // Nothing was written, nothing can be locked: close(2) need not ask us.
  info->noflush = file->writable || !parts_.options.posix_locks_local() ? 0 : 1;
  info->fh = open_files_.give(std::move(file));
}

// False: ask.
bool FileSystem::open_under_delegation(fuse_req_t request, const std::shared_ptr<Inode>& inode,
                                       fuse_file_info* info) {
  const uint32_t share_access = share_access_of(info->flags);
  const SteadyTime asked_at = parts_.clock.now();
  const auto opened = opens_.under_delegation(inode, credential(request), share_access);
  if (!opened) return false;
  auto file = std::make_unique<OpenFile>();
  file->data = opened->data;
  file->readable = (share_access & nfs4::kShareAccessRead) != 0;
  file->writable = (share_access & nfs4::kShareAccessWrite) != 0;
  if (file->writable) inode->writer_came();
  tell_opened(inode, opened->attributes, asked_at, std::move(file), info);
  // Interrupted meanwhile: there will be no release.
  if (fuse_reply_open(request, info) == -ENOENT) release(nullptr, info);
  return true;
}

// What the READ behind the OPEN has brought, if it is the whole file.
std::shared_ptr<const FirstBytes> FileSystem::first_bytes(const Question& question, const OpenAnswer& answer,
                                                          const client::FileAttributes& attributes) {
  const auto* read = answer.reply.result<nfs4::ReadResponse>(answer.layout_at);
  if (read == nullptr) return nullptr;
  const ByteSpan data = read->data.span();
  if (!read->end_of_file || data.size() != static_cast<uint64_t>(attributes.status.st_size)) return nullptr;
  return std::make_shared<const FirstBytes>(FirstBytes{.bytes = Bytes(data.begin(), data.end()),
                                                       .asked_at = question.asked_at,
                                                       .change = attributes.change,
                                                       .data_changes = question.data_changes});
}

// The kernel does not wait for a release. `request` may be null: nobody asked.
void FileSystem::release(fuse_req_t request, fuse_file_info* info) {
  const std::unique_ptr<OpenFile> file = open_files_.take_back(info->fh);
  if (file->attached) parts_.rings.detach(*file);
  if (file->watched) parts_.rings.events().end(*file);
  if (file->writable) file->inode->writer_left();
  drop_open_file_locks(*file, info->fh);
  opens_.close_if_last(file->inode, file->inode->release());
  if (request != nullptr) fuse_reply_err(request, 0);
}

}  // namespace pnfsrdma::fuse_client
