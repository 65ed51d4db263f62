// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/handle_keys.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/state/lease_keeper.h"
#include "server/mds/state/lock_waiters.h"
#include "server/mds/state/server_limits.h"
#include "server/mds/state/state_store.h"

// LOCK, LOCKT, LOCKU (RFC 8881, 9 and 18.10 to 18.12): advisory POSIX byte-range locks. The seqids of open
// and lock owners are NFSv4.0's and mean nothing; who an owner is follows from the session.
namespace pnfsrdma::mds {

using nfs4::LockType;
using nfs4::Status;

namespace {

bool is_exclusive(LockType type) {
  return type == LockType::kWrite || type == LockType::kWriteWait;
}
bool waits(LockType type) {
  return type == LockType::kReadWait || type == LockType::kWriteWait;
}

Outcome<nfs4::LockRange> check_range(uint64_t offset, uint64_t length, LockType type) {
  const auto range = nfs4::lock_range(offset, length, is_exclusive(type));
  if (!range) return std::unexpected(Status::kInval);
  return *range;
}

// Linux's client has room for an owner as long as its own, and fails the call with EIO when another client's
// is longer. Who holds the lock is only said for people to read.
constexpr size_t kDeniedOwnerBytesMax = 20;

nfs4::LockDenied denial(const LockTable::Conflict& conflict) {
  nfs4::LockDenied denied;
  denied.offset = conflict.range.first;
  denied.length = nfs4::length_of(conflict.range);
  denied.type = conflict.range.exclusive ? LockType::kWrite : LockType::kRead;
  const ByteSpan owner(conflict.holder->owner);
  denied.owner = {.client_id = conflict.holder->client,
                  .owner = nfs4::OwnerId(owner.first(std::min(owner.size(), kDeniedOwnerBytesMax)))};
  return denied;
}

// An ordinary stateid, or the current one.
Outcome<nfs4::Stateid> ordinary(const CompoundContext& context, const nfs4::Stateid& asked) {
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(asked));
  if (special_stateid(stateid) != SpecialStateid::kNone) return std::unexpected(Status::kBadStateid);
  return stateid;
}

// Whose lock it will be: the owner's state on this file, or a new one that nobody knows yet.
struct Owner {
  LockState* known = nullptr;
  LockState state;
  const OpenState* open = nullptr;
};

Outcome<Owner> new_owner(const CompoundContext& context, const nfs4::OpenToLockOwner& named, InodeId inode) {
  TRY_ASSIGN(const nfs4::Stateid stateid, ordinary(context, named.open_stateid));
  TRY_ASSIGN(const OpenState* open, context.find_open(stateid, inode));
  Owner owner;
  // A client that lost the answer, or has forgotten the stateid, names its owner as if it were new.
  owner.known = context.services.locks.find(context.client_id(), inode, named.lock_owner.owner);
  if (owner.known != nullptr) {
    owner.state = *owner.known;
    owner.open = &context.open_of(*owner.known);
    return owner;
  }
  const LockTable& locks = context.services.locks;
  const ServerLimits& limits = context.services.limits;
  if (locks.locks_of_client(context.client_id()).size() >= limits.lock_owners_per_client_max) {
    return std::unexpected(Status::kDelay);
  }
  owner.state.client = context.client_id();
  owner.state.inode = inode;
  owner.state.owner = named.lock_owner.owner;
  owner.state.open = open->other;
  owner.state.seqid = 0;
  owner.open = open;
  return owner;
}

Outcome<Owner> find_owner(const CompoundContext& context, const nfs4::LockOwner& locker, InodeId inode) {
  if (const auto* named = locker.get_if<nfs4::Locker::kNewOwner>()) return new_owner(context, *named, inode);
  TRY_ASSIGN(const nfs4::Stateid stateid,
             ordinary(context, locker.get_if<nfs4::Locker::kExistingOwner>()->lock_stateid));
  Owner owner;
  TRY_ASSIGN(owner.known, context.find_lock(stateid, inode));
  owner.state = *owner.known;
  owner.open = &context.open_of(*owner.known);
  return owner;
}

// 18.10.3: nobody locks for more than what he has opened the file for.
bool mode_allows(const OpenState& open, const nfs4::LockRange& range) {
  return (open.access & (range.exclusive ? kShareWrite : kShareRead)) != 0;
}

// So many ranges may go in passing; the end of more is a turn of its own, as a COMPOUND has room for 63 of them.
constexpr size_t kRangesInPassing = 128;

// The owner's state with these ranges, and the next seqid: on record, then in force.
Outcome<nfs4::Stateid> put_in_force(CompoundContext& context, Owner owner) {
  LockTable& locks = context.services.locks;
  if (owner.known != nullptr &&
      owner.known->ranges.all().size() > owner.state.ranges.all().size() + kRangesInPassing) {
    TRY(context.suspension.ask<bool>(
        [&](auto done) { context.services.leases.in_own_turn([done] { done(true); }); }));
  }
  owner.state.seqid = next_seqid(owner.state.seqid);
  if (owner.state.ranges.all().size() > kLockRangesMax) return std::unexpected(Status::kServerFault);
  if (owner.known == nullptr)
    owner.state.other =
        make_stateid_other(StateKind::kLock, context.services.clock.now(), context.services.random);
  TRY(context.services.state_store.put(owner.state));
  const nfs4::Stateid stateid = owner.state.stateid();
  if (owner.known == nullptr) {
    locks.add(std::move(owner.state));
  } else {
    locks.replace(*owner.known, std::move(owner.state));
  }
  context.set_current_stateid(stateid);
  return stateid;
}

}  // namespace

// RFC 8881, 18.10
nfs4::LockResponse handle(CompoundContext& context, const nfs4::LockArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  TRY_ASSIGN(const nfs4::LockRange range, check_range(arguments.offset, arguments.length, arguments.type));
  TRY(context.check_grace(arguments.reclaim));
  TRY_ASSIGN(Owner owner, find_owner(context, arguments.locker, inode->id));
  if (!mode_allows(*owner.open, range)) return Status::kOpenMode;

  LockWaiters& waiters = context.services.lock_waiters;
  const auto conflict =
      context.services.locks.conflict(inode->id, range, context.client_id(), owner.state.owner);
  if (conflict && arguments.reclaim) return Status::kReclaimConflict;
  if (conflict) {
    if (waits(arguments.type)) {
      TRY_ASSIGN(const ObjectHandle handle, context.current_handle());
      waiters.add({context.client_id(), inode->id, context.services.handles.encode(handle), owner.state.owner,
                   range});
    }
    return nfs4::LockResponse::failed(denial(*conflict));
  }
  owner.state.ranges.lock(range);
  // One that locks no more than it had, or unlocks, always may.
  const size_t ranges = owner.known == nullptr ? 0 : owner.known->ranges.all().size();
  if (owner.state.ranges.all().size() > ranges && !context.services.locks.has_room(context.client_id()))
    return Status::kDelay;
  const Bytes name = owner.state.owner;
  TRY_ASSIGN(const nfs4::Stateid stateid, put_in_force(context, std::move(owner)));
  waiters.remove(context.client_id(), inode->id, name);
  return nfs4::LockResult{stateid};
}

// RFC 8881, 18.11: what LOCK would say, and changes nothing.
nfs4::LockTestResponse handle(CompoundContext& context, const nfs4::LockTestArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  TRY_ASSIGN(const nfs4::LockRange range, check_range(arguments.offset, arguments.length, arguments.type));
  TRY(context.check_grace(false));
  // Locks under a write delegation are its holder's secret. (Who locks has the file open: nobody else holds one.)
  TRY(context.recall_delegations(*inode, FileAct::kUse));
  const auto conflict =
      context.services.locks.conflict(inode->id, range, context.client_id(), arguments.owner.owner);
  if (conflict) return nfs4::LockTestResponse::failed(denial(*conflict));
  return nfs4::LockTestResult{};
}

// RFC 8881, 18.12
nfs4::UnlockResponse handle(CompoundContext& context, const nfs4::UnlockArguments& arguments) {
  TRY_ASSIGN(const InodeId inode, context.current_file_to_give_back());
  TRY_ASSIGN(const nfs4::LockRange range, check_range(arguments.offset, arguments.length, arguments.type));
  TRY_ASSIGN(const nfs4::Stateid asked, ordinary(context, arguments.lock_stateid));
  TRY_ASSIGN(LockState* const lock, context.find_lock(asked, inode));
  Owner owner{.known = lock, .state = *lock};
  owner.state.ranges.unlock(range);
  TRY_ASSIGN(const nfs4::Stateid stateid, put_in_force(context, std::move(owner)));
  return nfs4::UnlockResult{stateid};
}

}  // namespace pnfsrdma::mds
