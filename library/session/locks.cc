// SPDX-License-Identifier: Apache-2.0
#include "library/session/locks.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "library/session/file.h"
#include "shared/base/log.h"
#include "shared/initiator/mds.h"
#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::library::session {

using initiator::CompoundReply;
using nfs4::LockType;
using nfs4::Status;

namespace {

// A server that loses its state more often in the course of one call is not worth waiting for.
constexpr int kLockAttempts = 5;

// Whatever its seqid is by now (RFC 8881, 8.2.2).
nfs4::Stateid newest(nfs4::Stateid stateid) {
  stateid.seqid = 0;
  return stateid;
}

LockType lock_type_of(const nfs4::LockRange& range, bool waits) {
  if (range.exclusive) return waits ? LockType::kWriteWait : LockType::kWrite;
  return waits ? LockType::kReadWait : LockType::kRead;
}

std::unexpected<Error> lock_refused(Status status, const char* what) {
  // What a program expects of a file system without locks.
  const bool unknown = status == Status::kNotSupp || status == Status::kOpIllegal;
  return fail(unknown ? ENOLCK : nfs4::to_errno(status),
              fmt::format("{}: the server answers {}", what, nfs4::to_string(status)));
}

nfs4::LockArguments lock_call(const nfs4::LockRange& range, LockType type, const nfs4::OwnerId& owner,
                              const std::optional<nfs4::Stateid>& known, const nfs4::Stateid& open) {
  nfs4::LockArguments arguments;
  arguments.type = type;
  arguments.offset = range.first;
  arguments.length = nfs4::length_of(range);
  if (known) {
    arguments.locker =
        nfs4::LockOwner::make<nfs4::Locker::kExistingOwner>(nfs4::ExistingLockOwner{newest(*known), 0});
    return arguments;
  }
  nfs4::OpenToLockOwner first;
  first.open_stateid = newest(open);
  first.lock_owner.owner = owner;
  arguments.locker = nfs4::LockOwner::make<nfs4::Locker::kNewOwner>(first);
  return arguments;
}

}  // namespace

Locks::Locks(uint64_t owner) : owner_(as_bytes(fmt::format("libpnfsrdma-lock-{}", owner))) {}

Result<CompoundReply> Locks::send_lock(initiator::Session& session, const File& file, const Open& open,
                                       const nfs4::LockRange& range, LockType type,
                                       const std::optional<nfs4::Stateid>& known) const {
  const Open now = file.copy(open);
  return session.call(
      {nfs4::PutFileHandleArguments{file.handle}, lock_call(range, type, owner_, known, now.stateid)},
      now.credential, {.cache_reply = true});
}

Result<bool> Locks::lock(initiator::Session& session, const File& file, const Open& open,
                         const nfs4::LockRange& range, bool waits) {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (lost_) return fail(EIO, "earlier locks were lost: unlock them first");
    const std::optional<nfs4::Stateid> sent = held_.lock()->stateid;
    const nfs4::Stateid open_stateid = file.copy(open).stateid;
    const auto reply = send_lock(session, file, open, range, lock_type_of(range, waits), sent);
    auto held = held_.lock();
    if (!reply) {
      held->doubtful = range;
      return std::unexpected(reply.error());
    }
    if (const auto* given = reply->result<nfs4::LockResponse>(1)) {
      held->stateid = given->lock_stateid;
      held->ranges.lock(range);
      return true;
    }
    if (reply->status == Status::kDenied) return false;
    if (!initiator::is_lost_state(reply->status)) return lock_refused(reply->status, "LOCK");
    // A reclaim may have been meanwhile.
    const bool same_lock =
        sent.has_value() == held->stateid.has_value() && (!sent || sent->other == held->stateid->other);
    const bool same_open = open_stateid.other == file.copy(open).stateid.other;
    if (!same_lock || !same_open) continue;
    if (sent) {
      // The server does not know the owner's stateid any more, and with it the locks.
      lost_ = !held->ranges.empty();
      held->stateid.reset();
      continue;
    }
    held.unlock();
    session.renew_opens();
  }
  return fail(EIO, "LOCK: the server loses its state again and again");
}

Result<> Locks::unlock(initiator::Session& session, const File& file, const Open& open,
                       const nfs4::LockRange& range, bool last) {
  settle_doubt(session, file, open);
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    std::optional<nfs4::Stateid> sent;
    {
      auto held = held_.lock();
      if (lost_ || !held->stateid) {
        held->ranges.unlock(range);
        if (held->ranges.empty()) lost_ = false;
        return {};
      }
      sent = newest(*held->stateid);
    }
    initiator::Session::Operations operations = {
        nfs4::PutFileHandleArguments{file.handle},
        nfs4::UnlockArguments{LockType::kWrite, 0, *sent, range.first, nfs4::length_of(range)}};
    if (last) operations.emplace_back(nfs4::FreeStateidArguments{*sent});
    TRY_ASSIGN(const CompoundReply reply,
               session.call(std::move(operations), file.copy(open).credential, {.cache_reply = true}));
    const auto* unlocked = reply.result<nfs4::UnlockResponse>(1);
    const bool is_lost = unlocked == nullptr && initiator::is_lost_state(reply.status);
    if (unlocked == nullptr && !is_lost) return lock_refused(reply.status, "LOCKU");
    auto held = held_.lock();
    if (is_lost && (lost_ || !held->stateid || held->stateid->other != sent->other)) continue;
    held->ranges.unlock(range);
    if (unlocked != nullptr) held->stateid = unlocked->lock_stateid;
    if (is_lost || last) *held = {};
    return {};
  }
  return fail(EIO, "LOCKU: the server loses its state again and again");
}

// A LOCK had no answer: perhaps the server has given it. The same again: what is held already is given at once, and
// then there is a stateid to unlock it by.
void Locks::settle_doubt(initiator::Session& session, const File& file, const Open& open) {
  std::optional<nfs4::LockRange> doubtful;
  std::optional<nfs4::Stateid> known;
  {
    auto held = held_.lock();
    doubtful = held->doubtful;
    known = held->stateid;
  }
  if (!doubtful) return;
  const auto reply = send_lock(session, file, open, *doubtful, lock_type_of(*doubtful, false), known);
  if (!reply) return;
  auto held = held_.lock();
  held->doubtful.reset();
  if (const auto* given = reply->result<nfs4::LockResponse>(1)) {
    held->stateid = given->lock_stateid;
    held->ranges.lock(*doubtful);
  }
}

Result<bool> Locks::test(initiator::Session& session, const File& file, const Open& open,
                         const nfs4::LockRange& range) const {
  nfs4::LockTestArguments arguments;
  arguments.type = lock_type_of(range, false);
  arguments.offset = range.first;
  arguments.length = nfs4::length_of(range);
  arguments.owner.owner = owner_;
  TRY_ASSIGN(const CompoundReply reply,
             session.call({nfs4::PutFileHandleArguments{file.handle}, std::move(arguments)},
                          file.copy(open).credential));
  if (reply.ok()) return true;
  if (reply.status == Status::kDenied) return false;
  return lock_refused(reply.status, "LOCKT");
}

Result<> Locks::reclaim(initiator::Session& session, const File& file, const Open& open,
                        const nfs4::Stateid& stateid) {
  Held before;
  {
    auto held = held_.lock();
    held->stateid.reset();
    held->doubtful.reset();
    before = *held;
  }
  if (lost_) return {};
  for (const nfs4::LockRange& range : before.ranges.all()) {
    nfs4::LockArguments arguments =
        lock_call(range, lock_type_of(range, false), owner_, before.stateid, stateid);
    arguments.reclaim = true;
    TRY_ASSIGN(const CompoundReply reply,
               session.call({nfs4::PutFileHandleArguments{file.handle}, std::move(arguments)},
                            open.credential, {.cache_reply = true, .recovery = true}));
    const auto* given = reply.result<nfs4::LockResponse>(1);
    if (given == nullptr) {
      lose();
      return {};
    }
    before.stateid = given->lock_stateid;
  }
  held_.lock()->stateid = before.stateid;
  return {};
}

void Locks::lose() {
  auto held = held_.lock();
  held->stateid.reset();
  held->doubtful.reset();
  if (held->ranges.empty() || lost_.exchange(true)) return;
  log_warning("library", "locks-lost the file's I/O fails until they are unlocked");
}

}  // namespace pnfsrdma::library::session
