// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "server/mds/state/callback_channel.h"
#include "server/mds/state/lock_table.h"
#include "shared/base/clock.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::mds {

// Who was denied a lock and said that he waits (READW_LT, WRITEW_LT): he is told by CB_NOTIFY_LOCK when it
// looks free, first come first told (RFC 8881, 9.6 and 20.11). That is a hint and no claim: nothing is kept
// free for him, and he asks again by himself too, so that whatever is forgotten here costs only time. Control
// loop only.
class LockWaiters {
 public:
  // A waiter who does not ask again for so long has given up.
  LockWaiters(const Clock& clock, LockTable& locks, CallbackChannel& callbacks, Milliseconds patience);
  LockWaiters(const LockWaiters&) = delete;
  LockWaiters& operator=(const LockWaiters&) = delete;

  struct Waiter {
    ClientId client = 0;
    uint64_t inode = 0;
    nfs4::FileHandle handle;  // as the client knows the file
    Bytes owner;
    nfs4::LockRange wanted;
  };
  // The same owner asking again keeps his place.
  void add(Waiter waiter);
  // He has the lock.
  void remove(ClientId client, uint64_t inode, ByteSpan owner);
  size_t size() const { return size_; }

 private:
  struct Waiting {
    Waiter waiter;
    SteadyTime until;
  };
  using Queue = std::list<Waiting>;  // in the order in which they came
  static Queue::iterator find(Queue& queue, ClientId client, ByteSpan owner);
  void forget_given_up();
  void look(uint64_t inode);

  const Clock& clock_;
  LockTable& locks_;
  CallbackChannel& callbacks_;
  const Milliseconds patience_;
  std::unordered_map<uint64_t, Queue> waiting_;  // by file
  size_t size_ = 0;
};

}  // namespace pnfsrdma::mds
