// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fuse-client/inode.h"

namespace pnfsrdma::sim {

// What applications have locked, by all clients: no two may have what goes not together. A lock is theirs from when
// they are told so until they give it up, unless their client has lost it meanwhile.
class HeldLocks {
 public:
  struct Lock {
    size_t client = 0;
    std::shared_ptr<fuse_client::Inode> inode;
    nfs4::LockRange range;
    // The client was about to hear that what it holds was revoked; so many revocations there had been.
    bool is_doubtful = false;
    uint64_t revocations = 0;
  };
  using Place = std::list<Lock>::iterator;

  // The violation, if it is one.
  std::optional<std::string> given(Lock lock, Place& place);
  void given_up(Place place) { locks_.erase(place); }
  // The client's host has died.
  void forget(size_t client) {
    std::erase_if(locks_, [client](const Lock& lock) { return lock.client == client; });
  }

 private:
  std::list<Lock> locks_;
};

}  // namespace pnfsrdma::sim
