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

  // Of this file, whose delegation has ended and is to be returned. Takes as long as the server does; nobody is asked
  // where no lock is here.
  void run(Inode& inode) const;

 private:
  bool give_all(Inode& inode, LockOwner owner, FileLocks::Held& held) const;
  bool give(Inode& inode, LockOwner owner, const nfs4::LockRange& range, FileLocks::Held& held) const;
  void take_back(const Inode& inode, FileLocks::Held& held) const;

  initiator::Session& session_;
};

}  // namespace pnfsrdma::fuse_client
