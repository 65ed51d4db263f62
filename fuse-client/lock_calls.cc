// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/lock_calls.h"

#include <cerrno>

#include "shared/base/log.h"
#include "shared/initiator/mds.h"
#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::fuse_client {
namespace {

using initiator::is_lost_state;
using nfs4::LockType;
using nfs4::Status;

// A server that loses its state more often in the course of one call is not worth waiting for.
constexpr int kAttempts = 5;

// One operation of an owner at a time.
class Turn {
 public:
  Turn(FileLocks& locks, LockOwner owner) : locks_(locks), owner_(owner), mine_(locks.begin(owner)) {}
  ~Turn() {
    if (mine_) locks_.end(owner_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool mine() const { return mine_; }

 private:
  FileLocks& locks_;
  const LockOwner owner_;
  const bool mine_;
};

bool same_state(const std::optional<nfs4::Stateid>& one, const std::optional<nfs4::Stateid>& other) {
  return one.has_value() == other.has_value() && (!one || one->other == other->other);
}

LockType type_of(const nfs4::LockRange& range, bool waits) {
  if (range.exclusive) return waits ? LockType::kWriteWait : LockType::kWrite;
  return waits ? LockType::kReadWait : LockType::kRead;
}

nfs4::Stateid newest(nfs4::Stateid stateid) {
  stateid.seqid = 0;
  return stateid;
}

std::unexpected<Error> refused(Status status, const char* what) {
  // ENOLCK: what a program expects of a file system without locks.
  const int number = status == Status::kNotSupp || status == Status::kOpIllegal ? ENOLCK : to_errno(status);
  return fail(number, std::string(what) + ": " + nfs4::to_string(status));
}

// A LOCK is on its way, or may be.
class AtServer {
 public:
  explicit AtServer(FileLocks& locks) : locks_(locks) {}
  ~AtServer() { locks_.asked_server(); }
  AtServer(const AtServer&) = delete;
  AtServer& operator=(const AtServer&) = delete;

 private:
  FileLocks& locks_;
};

}  // namespace

nfs4::LockArguments lock_arguments(const nfs4::LockRange& range, LockType type, LockOwner owner,
                                   const std::optional<nfs4::Stateid>& known, const nfs4::Stateid& open) {
  nfs4::LockArguments arguments;
  arguments.type = type;
  arguments.offset = range.first;
  arguments.length = nfs4::length_of(range);
  if (known) {
    arguments.locker =
        nfs4::LockOwner::make<nfs4::Locker::kExistingOwner>(nfs4::ExistingLockOwner{newest(*known), 0});
  } else {
    nfs4::OpenToLockOwner first;
    first.open_stateid = newest(open);
    first.lock_owner.owner = owner.name();
    arguments.locker = nfs4::LockOwner::make<nfs4::Locker::kNewOwner>(first);
  }
  return arguments;
}

void log_lost(const Inode& inode, size_t owners) {
  log_warning("fuse", "locks-lost inode={} owners={} its I/O fails until they unlock or close", inode.id,
              owners);
}

// PUTFH, LOCK, GETATTR.
Result<LockCalls::Reply> LockCalls::send_lock(const LockWish& wish, const FileLocks::Held& held,
                                              const nfs4::Stateid& open) {
  initiator::CallOptions options;
  options.cache_reply = true;
  options.interrupted = wish.interrupted;
  return session_.call(
      {nfs4::PutFileHandleArguments{wish.inode->handle},
       lock_arguments(wish.range, type_of(wish.range, wish.waits), wish.owner, held.stateid, open),
       nfs4::GetAttributesArguments{client::stat_attributes()}},
      wish.credential, options);
}

Result<LockCalls::Given> LockCalls::lock(const LockWish& wish) {
  const Turn turn(wish.inode->locks(), wish.owner);
  if (!turn.mine()) return fail(EINTR, "LOCK");
  TRY_ASSIGN(const bool here, lock_here(wish));
  if (here) return Given{.here = true, .attributes = {}};
  const AtServer at_server(wish.inode->locks());
  return lock_at_server(wish);
}

// False: the server has to be asked.
Result<bool> LockCalls::lock_here(const LockWish& wish) {
  FileLocks::Held asker;
  asker.credential = wish.credential;
  asker.process = wish.process;
  asker.open_file = wish.open_file;
  for (;;) {
    switch (wish.inode->lock(wish.owner, wish.range, asker, clock_.now(), session_.lease_end())) {
      case FileLocks::Verdict::kGiven:
        return true;
      case FileLocks::Verdict::kInTheWay:
        return fail(EAGAIN, "LOCK");
      case FileLocks::Verdict::kAskServer:
        return false;
      case FileLocks::Verdict::kTooMany:
        delegations_.end(wish.inode);
        [[fallthrough]];
      case FileLocks::Verdict::kWait:
        TRY(await_hand_over(wish));
    }
  }
}

// They are here, and the delegation is over or, for want of an answer, perhaps: then the server has to be heard.
Result<> LockCalls::await_hand_over(const LockWish& wish) {
  if (wish.interrupted != nullptr && *wish.interrupted) return fail(EINTR, "LOCK");
  if (clock_.now() >= session_.lease_end()) {
    initiator::CallOptions options;
    options.interrupted = wish.interrupted;
    TRY(session_.call({nfs4::PutRootFileHandleArguments{}}, wish.credential, options));
  }
  if (!wish.inode->locks().await_hand_over()) return fail(EINTR, "LOCK");
  return {};
}

Result<LockCalls::Given> LockCalls::lock_at_server(const LockWish& wish) {
  FileLocks& locks = wish.inode->locks();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    FileLocks::Held held = locks.held(wish.owner);
    if (held.lost) return fail(EIO, "LOCK: earlier locks were lost");
    const auto open = wish.inode->open_state(wish.range.exclusive);
    if (!open) return fail(EBADF, "LOCK");
    const std::optional<nfs4::Stateid> sent = held.stateid;
    const Result<Reply> reply = send_lock(wish, held, open->stateid);
    held = locks.held(wish.owner);  // a reclaim may have been meanwhile
    held.credential = wish.credential;
    held.process = wish.process;
    held.open_file = wish.open_file;
    if (!reply) {
      held.doubtful = wish.range;
      locks.keep(wish.owner, std::move(held));
      return std::unexpected(reply.error());
    }
    if (const auto* given = reply->result<nfs4::LockResponse>(1)) {
      held.stateid = given->lock_stateid;
      held.ranges.lock(wish.range);
      locks.keep(wish.owner, std::move(held));
      const auto* told = reply->result<nfs4::GetAttributesResponse>(2);
      const auto attributes =
          told ? client::to_file_attributes(told->attributes) : std::unexpected(reply->status);
      return Given{.attributes = attributes ? std::optional(*attributes) : std::nullopt};
    }
    if (reply->status == Status::kDenied) return fail(EAGAIN, "LOCK");
    if (!is_lost_state(reply->status)) return refused(reply->status, "LOCK");
    const auto reopened = wish.inode->open_state(wish.range.exclusive);
    if (!same_state(sent, held.stateid) || !reopened || !same_state(open->stateid, reopened->stateid))
      continue;
    if (!sent) {  // nor the open's
      session_.renew_opens();
      continue;
    }
    // The server does not know the owner's stateid any more, and with it the locks.
    if (!held.ranges.empty()) {
      log_warning("fuse", "locks-lost inode={} status={}", wish.inode->id, nfs4::to_string(reply->status));
      held.lost = true;
    }
    held.stateid.reset();
    locks.keep(wish.owner, std::move(held));
  }
  return fail(EIO, "LOCK: the server loses its state again and again");
}

Result<std::optional<nfs4::LockDenied>> LockCalls::test(const LockWish& wish) {
  std::optional<FileLocks::InTheWay> found;
  const auto look = [&] {
    return wish.inode->test_lock(wish.owner, wish.range, clock_.now(), session_.lease_end(), found);
  };
  FileLocks::Verdict verdict = look();
  for (; verdict == FileLocks::Verdict::kWait; verdict = look()) TRY(await_hand_over(wish));
  if (verdict == FileLocks::Verdict::kAskServer) return test_at_server(wish);
  if (!found) return std::nullopt;
  return nfs4::LockDenied{.offset = found->range.first,
                          .length = nfs4::length_of(found->range),
                          .type = type_of(found->range, false),
                          .owner = {.client_id = session_.clientid(), .owner = found->owner.name()}};
}

Result<std::optional<nfs4::LockDenied>> LockCalls::test_at_server(const LockWish& wish) {
  nfs4::LockTestArguments arguments;
  arguments.type = type_of(wish.range, false);
  arguments.offset = wish.range.first;
  arguments.length = nfs4::length_of(wish.range);
  arguments.owner.owner = wish.owner.name();
  TRY_ASSIGN(const auto reply,
             session_.call({nfs4::PutFileHandleArguments{wish.inode->handle}, std::move(arguments)},
                           wish.credential));
  if (reply.ok()) return std::nullopt;
  if (reply.status != Status::kDenied || reply.results.size() != 2) return refused(reply.status, "LOCKT");
  return std::get<nfs4::LockTestResponse>(reply.results[1]).failure;
}

// PUTFH, LOCKU, [FREE_STATEID].
Result<> LockCalls::unlock(Inode& inode, LockOwner owner, const nfs4::LockRange& range, bool last) {
  FileLocks& locks = inode.locks();
  const Turn turn(locks, owner);
  if (!turn.mine()) return fail(EINTR, "LOCKU");
  // Of an owner that has asked the server before, the stateid is still to be given up.
  TRY_ASSIGN(FileLocks::Verdict verdict, locks.unlock_here(owner, range));
  while (verdict == FileLocks::Verdict::kTooMany) {
    delegations_.end(inode.shared_from_this());
    if (!locks.await_hand_over()) return fail(EINTR, "LOCKU");
    TRY_ASSIGN(verdict, locks.unlock_here(owner, range));
  }
  const bool here = verdict == FileLocks::Verdict::kGiven;
  if (here && !(last && locks.held(owner).stateid)) return {};
  settle_doubt(inode, owner);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    FileLocks::Held held = locks.held(owner);
    if (held.lost) {
      held.ranges.unlock(range);
      if (last || held.ranges.empty()) {
        locks.forget(owner);
      } else {
        locks.keep(owner, std::move(held));
      }
      return {};
    }
    if (!held.stateid) return {};
    const nfs4::Stateid stateid = newest(*held.stateid);
    initiator::Session::Operations operations = {
        nfs4::PutFileHandleArguments{inode.handle},
        nfs4::UnlockArguments{LockType::kWrite, 0, stateid, range.first, nfs4::length_of(range)}};
    if (last) operations.emplace_back(nfs4::FreeStateidArguments{stateid});
    initiator::CallOptions options;
    options.cache_reply = true;
    TRY_ASSIGN(const Reply reply, session_.call(std::move(operations), held.credential, options));
    const auto* unlocked = reply.result<nfs4::UnlockResponse>(1);
    if (unlocked == nullptr && !is_lost_state(reply.status)) return refused(reply.status, "LOCKU");
    held = locks.held(owner);  // a reclaim may have been meanwhile
    if (unlocked == nullptr && (held.lost || !same_state(stateid, held.stateid))) continue;
    held.ranges.unlock(range);
    if (unlocked != nullptr) held.stateid = unlocked->lock_stateid;
    if (unlocked == nullptr || last) held = {};
    locks.keep(owner, std::move(held));
    return {};
  }
  return fail(EIO, "LOCKU: the server loses its state again and again");
}

// A LOCK had no answer: perhaps the server has given it. The same again: what is held already is given at
// once, and then there is a stateid to unlock it by.
void LockCalls::settle_doubt(Inode& inode, LockOwner owner) {
  FileLocks& locks = inode.locks();
  FileLocks::Held held = locks.held(owner);
  if (!held.doubtful) return;
  const auto open = inode.open_state(held.doubtful->exclusive);
  if (!open) return;
  const LockWish wish{.inode = inode.shared_from_this(),
                      .owner = owner,
                      .range = *held.doubtful,
                      .credential = held.credential,
                      .process = held.process,
                      .open_file = held.open_file};
  const Result<Reply> reply = send_lock(wish, held, open->stateid);
  if (!reply) return;
  held = locks.held(owner);
  held.doubtful.reset();
  if (const auto* given = reply->result<nfs4::LockResponse>(1)) {
    held.stateid = given->lock_stateid;
    held.ranges.lock(wish.range);
  }
  locks.keep(owner, std::move(held));
}

Result<> LockCalls::reclaim(Inode& inode, const nfs4::Stateid& open, bool grace) {
  if (inode.locks().outlive_server()) return {};
  size_t lost = 0;
  for (const LockOwner owner : inode.locks().owners()) {
    FileLocks::Held held = inode.locks().held(owner);
    held.stateid.reset();
    held.doubtful.reset();
    if (!held.ranges.empty() && !held.lost) {
      bool reclaimed = false;
      if (grace) {
        TRY_ASSIGN(reclaimed, reclaim_owner(inode, open, held, owner));
      }
      held.lost = !reclaimed;
      lost += held.lost;
    }
    inode.locks().keep(owner, std::move(held));
  }
  if (lost > 0) log_lost(inode, lost);
  return {};
}

Result<bool> LockCalls::reclaim_owner(Inode& inode, const nfs4::Stateid& open, FileLocks::Held& held,
                                      LockOwner owner) {
  initiator::CallOptions options;
  options.cache_reply = true;
  options.recovery = true;
  for (const nfs4::LockRange& range : held.ranges.all()) {
    nfs4::LockArguments arguments = lock_arguments(range, type_of(range, false), owner, held.stateid, open);
    arguments.reclaim = true;
    TRY_ASSIGN(const Reply reply,
               session_.call({nfs4::PutFileHandleArguments{inode.handle}, std::move(arguments)},
                             held.credential, options));
    const auto* given = reply.result<nfs4::LockResponse>(1);
    if (given == nullptr) {
      held.stateid.reset();
      return false;
    }
    held.stateid = given->lock_stateid;
  }
  return true;
}

void LockCalls::lose(Inode& inode) {
  // Without grace nothing is asked for, so there is no answer to miss.
  (void)reclaim(inode, {}, false);
  const size_t lost = inode.locks().lose_here();
  if (lost > 0) log_lost(inode, lost);
}

}  // namespace pnfsrdma::fuse_client
