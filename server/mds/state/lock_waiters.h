// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>

#include "server/mds/state/callback_channel.h"
#include "server/mds/state/lock_table.h"
#include "server/mds/state/owner_index.h"
#include "server/mds/state/range_index.h"
#include "shared/base/clock.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::mds {

// Who was denied a lock and said that he waits (READW_LT, WRITEW_LT): he is told by CB_NOTIFY_LOCK when it
// looks free, first come first told (RFC 8881, 9.6 and 20.11). That is a hint and no claim: nothing is kept
// free for him, and he asks again by himself too, so that whatever is forgotten here costs only time: there are
// places for 4,096 who wait, and 128 of them are told of one release. Who asks costs O(log n); a release costs a look
// at each who waits between the first and the last of its bytes. Control loop only.
class LockWaiters {
 public:
  // A waiter that does not ask again within this time has given up.
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
  size_t size() const { return waiting_.size(); }

 private:
  struct Waiting;
  using Queue = std::list<Waiting>;
  struct Waiting : Waiter {
    SteadyTime until;
    uint64_t number = 0;  // in the order in which they came
    Queue::iterator place;
  };
  void drop(Waiting& waiting);
  void forget_given_up();
  void look(uint64_t inode, std::span<const nfs4::LockRange> released);
  void tell(const Waiting& waiting);

  const Clock& clock_;
  LockTable& locks_;
  CallbackChannel& callbacks_;
  const Milliseconds patience_;
  Queue waiting_;  // in the order in which they last asked, and so give up
  OwnerIndex<Waiting> by_owner_;
  std::unordered_map<uint64_t, RangeIndex<Waiting*>> by_file_;
  uint64_t next_number_ = 1;
};

}  // namespace pnfsrdma::mds
