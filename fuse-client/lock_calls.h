// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "fuse-client/delegations.h"
#include "fuse-client/file_locks.h"
#include "fuse-client/inode.h"
#include "shared/base/result.h"
#include "shared/client/file_attributes.h"
#include "shared/initiator/session/session.h"
#include "shared/nfs4/lock_operations.h"

namespace pnfsrdma::fuse_client {

// Who would like to lock what.
struct LockWish {
  std::shared_ptr<Inode> inode;
  LockOwner owner;
  nfs4::LockRange range;
  initiator::Credential credential;
  pid_t process = 0;
  uint64_t open_file = 0;                          // our number of it
  bool waits = false;                              // the server may tell when it looks free (CB_NOTIFY_LOCK)
  const std::atomic<bool>* interrupted = nullptr;  // true: nobody wants it any more
};

// LOCK, LOCKT and LOCKU, and the books about them in the inode's FileLocks. Stateids are sent with seqid 0,
// "the newest" (RFC 8881, 8.2.2). Thread-safe. Besides those named below, errors are errnos for FUSE: EINTR,
// ETIMEDOUT, ESHUTDOWN, EIO, EBADF (the file is not open that way).
class LockCalls {
 public:
  // All outlive it.
  LockCalls(initiator::Session& session, Delegations& delegations, const Clock& clock)
      : session_(session), delegations_(delegations), clock_(clock) {}

  // `here`: without the server, under a write delegation: nobody else has changed the file. Else its attributes from
  // when the lock was given, if the server told them.
  struct Given {
    bool here = false;
    std::optional<client::FileAttributes> attributes;
  };
  // EAGAIN: somebody else has it. EIO: this owner's locks were lost.
  Result<Given> lock(const LockWish& wish);
  // Whose lock is in the way, if any.
  Result<std::optional<nfs4::LockDenied>> test(const LockWish& wish);
  // `last`: the owner will lock no more; its stateid is given up too, `range` is everything.
  Result<> unlock(Inode& inode, LockOwner owner, const nfs4::LockRange& range, bool last = false);

  // After the server lost its state and the file is open again. `grace`: locks may be reclaimed. What can't
  // be is lost. Locks that are here stay, under a delegation that has been reclaimed. Error: no answer. On the recovery
  // thread, while nobody else calls.
  Result<> reclaim(Inode& inode, const nfs4::Stateid& open, bool grace);
  // All of them: the file could not be opened again.
  void lose(Inode& inode);

 private:
  using Reply = initiator::CompoundReply;
  Result<bool> lock_here(const LockWish& wish);
  Result<Given> lock_at_server(const LockWish& wish);
  Result<std::optional<nfs4::LockDenied>> test_at_server(const LockWish& wish);
  Result<> await_hand_over(const LockWish& wish);
  Result<Reply> send_lock(const LockWish& wish, const FileLocks::Held& held, const nfs4::Stateid& open);
  void settle_doubt(Inode& inode, LockOwner owner);
  Result<bool> reclaim_owner(Inode& inode, const nfs4::Stateid& open, FileLocks::Held& held, LockOwner owner);

  initiator::Session& session_;
  Delegations& delegations_;
  const Clock& clock_;
};

// LOCK of an owner: by the stateid that it has at the server, or else from the open.
nfs4::LockArguments lock_arguments(const nfs4::LockRange& range, nfs4::LockType type, LockOwner owner,
                                   const std::optional<nfs4::Stateid>& known, const nfs4::Stateid& open);
// So many owners have lost what they held: an event.
void log_lost(const Inode& inode, size_t owners);

}  // namespace pnfsrdma::fuse_client
