// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <set>
#include <vector>

#include "fuse-client/inode.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::fuse_client {

// Gives the locks that a mount has decided about under a write delegation to the server, before that is returned
// (RFC 8881, 10.4.4): several LOCKs to a COMPOUND, of one user. Others may have had a lock as soon as the delegation
// was revoked; so behind the LOCKs, in the same COMPOUND, the server is asked whether it was in force still. What it
// does not confirm is lost (FileLocks). Thread-safe, but for one file at a time.
class LockHandOver {
 public:
  explicit LockHandOver(initiator::Session& session) : session_(session) {}

  // Of this file, whose delegation has ended and is to be returned. Takes as long as the server does, but where it
  // says DELAY again and again, half a lease: by then it would revoke the delegation, and others would have the locks.
  // Nobody is asked where no lock is here. `between` is called behind each COMPOUND: what else waits need not wait for
  // all of them.
  void run(Inode& inode, const std::function<void()>& between = [] {}) const;

 private:
  // One LOCK; `owner`: the place in HandOver::owners.
  struct Ask {
    size_t owner = 0;
    nfs4::LockRange range;
  };
  struct Work;
  void give_all(Work& work, const std::function<void()>& between) const;
  std::vector<Ask> next(Work& work) const;
  void give(Work& work, const std::vector<Ask>& asks) const;
  void lose(Work& work, size_t owner) const;
  void take_back(const Inode& inode, FileLocks::Held& held) const;

  initiator::Session& session_;
};

}  // namespace pnfsrdma::fuse_client
