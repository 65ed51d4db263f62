// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuse-client/inode.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::fuse_client {

// Gives the locks that a mount has decided about under a write delegation to the server, before that is returned
// (RFC 8881, 10.4.4): a LOCK each. Others may have had a lock as soon as the delegation was revoked; so behind each
// LOCK, in the same COMPOUND, the server is asked whether it was in force still. What it does not confirm is lost
// (FileLocks). Thread-safe, but for one file at a time.
class LockHandOver {
 public:
  explicit LockHandOver(initiator::Session& session) : session_(session) {}

  // Of this file, whose delegation has ended and is to be returned. Takes as long as the server does, but where it
  // says DELAY again and again, half a lease: by then it would revoke the delegation, and others would have the locks.
  // Nobody is asked where no lock is here.
  void run(Inode& inode) const;

 private:
  // The end of the lease when the server began to say DELAY: it moves on with each answer.
  using Delayed = std::optional<SteadyTime>;
  bool give_all(Inode& inode, LockOwner owner, FileLocks::Held& held, Delayed& delayed) const;
  bool give(Inode& inode, LockOwner owner, const nfs4::LockRange& range, FileLocks::Held& held,
            Delayed& delayed) const;
  Result<initiator::CompoundReply> send(const Inode& inode, const nfs4::LockArguments& lock,
                                        const nfs4::Stateid& delegation,
                                        const initiator::Credential& credential, Delayed& delayed) const;
  void take_back(const Inode& inode, FileLocks::Held& held) const;

  initiator::Session& session_;
};

}  // namespace pnfsrdma::fuse_client
