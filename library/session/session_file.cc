// SPDX-License-Identifier: Apache-2.0
#include "library/session/session_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "library/session/session_watch.h"
#include "shared/base/random.h"
#include "shared/client/file_attributes.h"
#include "shared/nfs4/status_errno.h"

// Calls to the MDS: an open 1, a close 1 that nobody waits for and a LAYOUTCOMMIT where the file has grown; an
// overwrite or read under a layout 0; a read that ends at the end of the file 1 (another client may have
// appended); an append as a mount's (shared/initiator/README.md).
namespace pnfsrdma::library::session {

using initiator::BufferSlice;
using initiator::CompoundReply;

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

// O_EXCL: EXCLUSIVE4_1, whose verifier makes a repetition harmless.
nfs4::OpenHow create_how(int flags, nfs4::Attributes attributes) {
  if ((flags & O_EXCL) == 0) {
    return nfs4::OpenHow::make<nfs4::OpenType::kCreate>(
        nfs4::CreateHow::make<nfs4::CreateMode::kUnchecked>(std::move(attributes)));
  }
  nfs4::ExclusiveCreate exclusive;
  SystemRandom().fill(exclusive.verifier);
  exclusive.attributes = std::move(attributes);
  return nfs4::OpenHow::make<nfs4::OpenType::kCreate>(
      nfs4::CreateHow::make<nfs4::CreateMode::kExclusive41>(std::move(exclusive)));
}

// The file is new: whoever has made it uses it, whatever its mode. (Where the server cannot tell, it is not.)
bool has_made(const nfs4::OpenResult& opened, int flags) {
  return (flags & O_CREAT) != 0 && opened.change.atomic && opened.change.before != opened.change.after;
}

// `count` bytes of a caller's memory, piece by piece through memory that RDMA reaches: `move` gets the piece and where
// it begins, and says how much it has moved. Registered memory is one piece, and not copied.
template <typename Move>
Result<size_t> by_pieces(Client& client, void* buffer, size_t count, bool copy_in, const Move& move) {
  const auto registered = client.find(buffer, count);
  initiator::BufferPool::Taken bounce;
  if (!registered && count > 0) {
    TRY_ASSIGN(bounce, client.data_path().buffers().take());
  }
  auto* const bytes = static_cast<std::byte*>(buffer);
  size_t done = 0;
  while (done < count) {
    const size_t length =
        std::min(count - done, registered ? SessionFile::kStepMax : initiator::kBufferPayload);
    const BufferSlice piece =
        registered ? registered.memory().slice(registered.offset() + done, length) : bounce->slice(0, length);
    if (!registered && copy_in) std::memcpy(piece.data(), bytes + done, length);
    const Result<size_t> moved = move(done, piece);
    if (!moved && done == 0) return moved;
    if (!moved) break;  // what was moved counts; the error comes again
    if (!registered && !copy_in) std::memcpy(bytes + done, piece.data(), *moved);
    done += *moved;
    if (*moved < length) break;
  }
  return done;
}

}  // namespace

SessionFile::SessionFile(Client& client, std::shared_ptr<File> file, std::shared_ptr<Open> open, int flags)
    : OpenFile(client, flags),
      client_(client),
      file_(std::move(file)),
      open_(std::move(open)),
      cursor_(file_->data->error_cursor()) {}

// PUTFH, LOOKUPs, OPEN, GETFH, GETATTR, [ACCESS]. Servers grant an OPEN to read to who may only execute (RFC 8881,
// section 6.2.1.3.1): that nobody else reads by it is the client's doing.
Result<std::unique_ptr<SessionFile>> SessionFile::open(Client& client, std::string_view path, int flags,
                                                       mode_t mode) {
  TRY(check_flags(path, flags));
  if (Names::names_directory(path)) {
    if ((flags & O_CREAT) != 0) return fail(EISDIR, fmt::format("{}: the path names a directory", path));
    TRY(client.names().status(path, Client::caller()));
    return fail(EISDIR, fmt::format("{} is a directory", path));
  }
  auto open = std::make_shared<Open>();
  open->owner = client.next_owner();
  open->locks = std::make_shared<Locks>(open->owner);
  open->share_access = share_access_of(flags);
  open->credential = Client::caller();
  const bool exclusive = (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0;
  const bool reads = (open->share_access & nfs4::kShareAccessRead) != 0;
  nfs4::OpenArguments arguments;
  arguments.share_access = open->share_access | nfs4::kShareAccessWantNoDelegation;
  arguments.share_deny = nfs4::kShareDenyNone;
  arguments.owner.owner = owner_id(open->owner);
  if ((flags & O_CREAT) != 0) arguments.how = create_how(flags, client.names().mode_of_new(mode));
  TRY_ASSIGN(const Names::Answer answer,
             client.names().in_directory(
                 path, open->credential, exclusive ? Names::LastLink::kKeep : Names::LastLink::kFollow,
                 [&](const std::string& name) {
                   arguments.claim = nfs4::OpenClaim::make<nfs4::ClaimType::kNull>(name);
                   Names::Operations operations{arguments, nfs4::GetFileHandleArguments{},
                                                nfs4::GetAttributesArguments{client::open_attributes()}};
                   if (reads) operations.emplace_back(nfs4::AccessArguments{nfs4::kAccessRead});
                   return operations;
                 }));
  const auto* opened = answer.result<nfs4::OpenResponse>(0);
  const auto* handle = answer.result<nfs4::GetFileHandleResponse>(1);
  const auto* attributes = answer.result<nfs4::GetAttributesResponse>(2);
  if (opened == nullptr || handle == nullptr || attributes == nullptr) return fail(EPROTO, "OPEN");
  open->stateid = opened->stateid;
  const uint64_t size = attributes->attributes.size.value_or(0);
  auto file = client.files().join(handle->object, open, size);
  if (const auto sizes = client::thresholds_of(attributes->attributes))
    file->data->set_thresholds(sizes->first, sizes->second);
  const auto* access = answer.result<nfs4::AccessResponse>(3);
  const bool may_read = access != nullptr && (access->access & nfs4::kAccessRead) != 0;
  const bool refused = reads && !may_read && !exclusive && !has_made(*opened, flags);
  std::unique_ptr<SessionFile> made(new SessionFile(client, std::move(file), std::move(open), flags));
  if (refused) {
    (void)made->close();
    return fail(EACCES, fmt::format("{}: may not be read", path));
  }
  if ((flags & O_TRUNC) != 0 && made->data().size() > 0) {
    if (auto cut = made->truncate(0); !cut) {
      (void)made->close();
      return std::unexpected(std::move(cut).error());
    }
  }
  return made;
}

Result<> SessionFile::close() {
  const Result<> closed = writable() ? data().close(cursor_) : Result<>();
  {
    const Locks::Turn turn = open_->locks->turn();
    (void)open_->locks->unlock(client_.session(), *file_, *open_, {0, UINT64_MAX, true}, true);
  }
  client_.files().leave(file_, *open_);
  return closed;
}

Result<size_t> SessionFile::read(void* buffer, size_t count, uint64_t offset) {
  if (!readable()) return fail(EBADF, "the file is not open for reading");
  TRY(check_locks());
  return by_pieces(client_, buffer, count, false, [&](size_t done, BufferSlice piece) -> Result<size_t> {
    TRY_ASSIGN(size_t moved, data().read(offset + done, piece));
    if (moved == piece.size()) return moved;
    // As far as is known here the file ends there.
    const uint64_t end = data().size();
    if (!client_.files().ask_size(*file_, open_->credential) || data().size() <= end) return moved;
    TRY_ASSIGN(const size_t more,
               data().read(offset + done + moved, piece.slice(moved, piece.size() - moved)));
    return moved + more;
  });
}

Result<size_t> SessionFile::write(const void* buffer, size_t count, uint64_t offset, bool durable) {
  if (!writable()) return fail(EBADF, "the file is not open for writing");
  TRY(check_locks());
  if (appends()) {
    TRY(append(buffer, count, durable));
    return count;
  }
  initiator::ErrorCursor losses = data().losses_from_now();
  TRY_ASSIGN(const size_t written,
             by_pieces(client_, const_cast<void*>(buffer), count, true, [&](size_t done, BufferSlice piece) {
               return data().write(offset + done, piece, stability_of(durable));
             }));
  if (durable) TRY(data().fdatasync(losses));
  return written;
}

Result<uint64_t> SessionFile::append(const void* buffer, size_t count, bool durable) {
  if (!writable()) return fail(EBADF, "the file is not open for writing");
  TRY(check_locks());
  initiator::ErrorCursor losses = data().losses_from_now();
  std::optional<uint64_t> first;
  TRY_ASSIGN(const size_t written, by_pieces(client_, const_cast<void*>(buffer), count, true,
                                             [&](size_t, BufferSlice piece) -> Result<size_t> {
                                               TRY_ASSIGN(
                                                   std::optional<uint64_t> at,
                                                   data().append_unasked(piece, stability_of(durable)));
                                               if (!at) {
                                                 TRY(client_.files().ask_size(*file_, open_->credential));
                                                 TRY_ASSIGN(at, data().append(piece, stability_of(durable)));
                                               }
                                               if (!first) first = at;
                                               return piece.size();
                                             }));
  if (written < count) return fail(EIO, fmt::format("{} of {} bytes were appended", written, count));
  if (durable) TRY(data().fdatasync(losses));
  return first.value_or(data().size());
}

Result<> SessionFile::sync(bool data_only) {
  return data_only ? data().fdatasync(cursor_) : data().fsync(cursor_);
}

Result<> SessionFile::truncate(uint64_t size) {
  if (!writable()) return fail(EINVAL, "the file is not open for writing");
  // A layout or an open may die while we speak of it (the server was restarted, or revoked it).
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    bool again = false;
    Result<> done = truncate_once(size, again);
    if (done || !again || tries == kTries) return done;
  }
}

// PUTFH, [LAYOUTRETURN], SETATTR: what is cut off is given back first, so that the server need not recall it from
// us.
Result<> SessionFile::truncate_once(uint64_t size, bool& again) {
  TRY(data().settle());
  TRY_ASSIGN(auto layout_return, data().truncating(size));
  Names::Operations operations = {nfs4::PutFileHandleArguments{file_->handle}};
  const bool returns = layout_return.has_value();
  if (returns) operations.emplace_back(std::move(*layout_return));
  nfs4::SetAttributesArguments set;
  set.attributes.size = size;
  // Our own: another one's may be closed meanwhile.
  set.stateid = file_->copy(*open_).stateid;
  const nfs4::Stateid refused = set.stateid;
  const size_t set_at = operations.size();
  operations.emplace_back(std::move(set));
  const std::function take_in_return = [&](const CompoundReply& so_far) {
    const auto* result = returns ? so_far.result<nfs4::LayoutReturnResponse>(1) : nullptr;
    if (result != nullptr) data().layout_returned(*result);
  };
  Result<CompoundReply> reply = client_.session().call(
      std::move(operations), open_->credential, {.cache_reply = true, .on_repetition = &take_in_return});
  if (reply) take_in_return(*reply);
  const bool done = reply && reply->succeeded(set_at);
  (void)data().truncated(size, done);
  if (done) return {};
  if (!reply) return std::unexpected(std::move(reply).error());
  const bool is_lost = initiator::is_lost_state(reply->status);
  if (is_lost && returns && reply->results.size() == 2) {
    data().layouts_refused(reply->status);
    again = true;
  } else if (is_lost) {
    // Unless that has been done meanwhile.
    if (file_->copy(*open_).stateid.other == refused.other) client_.session().renew_opens();
    again = true;
  }
  return fail(nfs4::to_errno(reply->status),
              fmt::format("truncation: the server answers {}", nfs4::to_string(reply->status)));
}

Result<struct stat> SessionFile::status() {
  TRY(data().settle());
  const uint64_t version = data().local_version();
  const SteadyTime asked = steady_now();
  TRY_ASSIGN(const CompoundReply reply,
             client_.session().call({nfs4::PutFileHandleArguments{file_->handle},
                                     nfs4::GetAttributesArguments{client::stat_attributes()}},
                                    open_->credential));
  const auto* told = reply.result<nfs4::GetAttributesResponse>(1);
  if (told == nullptr) return fail(nfs4::to_errno(reply.status), "GETATTR");
  auto attributes = client::to_file_attributes(told->attributes);
  if (!attributes) return fail(nfs4::to_errno(attributes.error()), "GETATTR");
  data().server_size(static_cast<uint64_t>(attributes->status.st_size), version, asked);
  attributes->status.st_size = static_cast<off_t>(data().size());
  return attributes->status;
}

Result<uint64_t> SessionFile::change_word(const WordChange& change) {
  TRY(check_locks());
  initiator::WordIo word{.operand = change.operand, .expected = change.expected, .durable = change.durable};
  switch (change.kind) {
    case WordChange::Kind::kStore:
      word.change = brick::WordChange::kStore;
      break;
    case WordChange::Kind::kCompareAndSwap:
      word.change = brick::WordChange::kCompareAndSwap;
      break;
    case WordChange::Kind::kFetchAndAdd:
      word.change = brick::WordChange::kFetchAndAdd;
      break;
  }
  TRY(know_size(change.offset + sizeof(uint64_t)));
  return data().change_word(change.offset, word);
}

Result<OpenFile::Verified> SessionFile::verify(std::span<const pnfsrdma_range> ranges) {
  std::vector<initiator::FileRange> wanted;
  uint64_t end = 0;
  for (const pnfsrdma_range& range : ranges) {
    wanted.push_back({range.offset, range.length});
    end = std::max(end, range.offset + range.length);
  }
  TRY(know_size(end));
  TRY_ASSIGN(initiator::ReadBackSums sums, data().flush_and_verify(wanted, cursor_));
  return Verified{sums.medium, std::move(sums.checksums)};
}

Result<std::unique_ptr<Watch>> SessionFile::watch(const pnfsrdma_range& range) {
  TRY(know_size(range.offset + range.length));
  TRY_ASSIGN(auto watch, data().watch({range.offset, range.length}));
  return std::make_unique<SessionWatch>(*this, range, std::move(watch));
}

Result<> SessionFile::signal(const pnfsrdma_range& range, uint64_t value) {
  TRY(know_size(range.offset + range.length));
  return data().signal({range.offset, range.length}, value, cursor_);
}

// As nfs(5) has it: a program that believes that it has the file to itself must not go on.
Result<> SessionFile::check_locks() const {
  if (open_->locks->lost())
    return fail(EIO, "locks of the file were lost with the server's state; unlock, and look what is there");
  return {};
}

namespace {

nfs4::LockRange range_of(uint64_t offset, uint64_t length, bool exclusive) {
  return {offset, length == 0 ? UINT64_MAX : offset + length - 1, exclusive};
}

}  // namespace

// Who has got a lock sees what the one before has written: its size, too.
Result<> SessionFile::lock(const LockWish& wish) {
  const nfs4::LockRange range = range_of(wish.offset, wish.length, wish.exclusive);
  Locks& locks = *open_->locks;
  LockWait wait(wish.timeout_ms);
  for (;;) {
    {
      const Locks::Turn turn = locks.turn();
      TRY_ASSIGN(const bool locked,
                 locks.lock(client_.session(), *file_, *open_, range, wish.timeout_ms != 0));
      if (locked) break;
    }
    TRY(wait.pause());
  }
  const Result<> told = client_.files().ask_size(*file_, open_->credential);
  if (!told) (void)unlock(wish.offset, wish.length);
  return told;
}

Result<> SessionFile::unlock(uint64_t offset, uint64_t length) {
  // What was written is known to the server before anybody else may look. What goes wrong is for a sync to say.
  if (writable()) (void)data().hand_over();
  const Locks::Turn turn = open_->locks->turn();
  return open_->locks->unlock(client_.session(), *file_, *open_, range_of(offset, length, true), false);
}

Result<bool> SessionFile::may_lock(const LockWish& wish) {
  return open_->locks->test(client_.session(), *file_, *open_,
                            range_of(wish.offset, wish.length, wish.exclusive));
}

Result<> SessionFile::know_size(uint64_t end) {
  if (end <= data().size()) return {};
  return client_.files().ask_size(*file_, open_->credential);
}

}  // namespace pnfsrdma::library::session
