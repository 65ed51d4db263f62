// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fuse-client/close_queue.h"
#include "fuse-client/inode.h"
#include "shared/base/sync.h"
#include "shared/initiator/callbacks.h"

namespace pnfsrdma::fuse_client {

// The delegations of this mount, in the order of their last use. What each allows is its Inode's
// (FileDelegation); here is decided when it ends: the server recalls it, the kernel forgets the file, there are too
// many, or the server's word is in doubt. The CloseQueue then returns it, with the open that it has kept. Thread-safe;
// waits for nothing.
class Delegations {
 public:
  // More than these, and the one that was used longest ago goes.
  static constexpr size_t kHeldMax = 4096;

  explicit Delegations(CloseQueue& closes, size_t held_max = kHeldMax)
      : closes_(closes), held_max_(held_max) {}

  // The OPEN that was asked in this era() has brought one for the inode.
  void take(const std::shared_ptr<Inode>& inode, const FileDelegation::Grant& grant, uint64_t era);
  // Each end_all() begins one: what was asked for in the era before is not used.
  uint64_t era() const;
  // It was opened under the one it has.
  void used(const Inode& inode);
  // It is not to be used any more. Nothing happens if it has none in force. kAtOnce: somebody may wait for it.
  void end(const std::shared_ptr<Inode>& inode, CloseQueue::When when = CloseQueue::When::kAtOnce);
  // The server has dropped it, with the directory that this client has removed.
  void lost(Inode& inode);
  // All: state is in doubt, or the mount ends.
  void end_all();
  // The server has lost its state: the same of all but those under which locks are decided here, or data is held. These
  // are to be reclaimed, or ended.
  std::vector<std::shared_ptr<Inode>> server_lost();
  // Asked before the file of a recall is looked for: the answer that creates it may be taken in between.
  bool is_creating() const { return creating_ > 0; }
  // While one lives, an OPEN is under way that creates a file and may bring a delegation of it: of which, nobody knows
  // yet.
  class Creating {
   public:
    explicit Creating(Delegations& delegations) : delegations_(delegations) { ++delegations_.creating_; }
    ~Creating() { --delegations_.creating_; }
    Creating(const Creating&) = delete;
    Creating& operator=(const Creating&) = delete;

   private:
    Delegations& delegations_;
  };
  // CB_RECALL (RFC 8881, 20.2) of a file that the kernel knows, or of none (null). One that is not known here came with
  // an answer that nobody was there to take any more, and is returned as well. BAD_STATEID: that answer may still
  // arrive; the server asks again. `may_be_new`: is_creating() said so.
  initiator::CallbackAnswer recall(const std::shared_ptr<Inode>& inode, const nfs4::FileHandle& handle,
                                   const nfs4::Stateid& stateid, bool may_be_new = false);
  // CB_RECALL_ANY (20.6): no more than so many are to stay.
  void keep(size_t count);

  struct Counts {
    size_t held = 0;
    uint64_t granted = 0;
    uint64_t granted_to_write = 0;  // of them
    uint64_t recalled = 0;
    uint64_t opens = 0;  // without the server
  };
  Counts counts() const;

 private:
  using Order = std::list<std::shared_ptr<Inode>>;  // the one used last is at the end
  void end(Order ending, CloseQueue::When when = CloseQueue::When::kAtOnce);
  void return_unknown(const nfs4::FileHandle& handle, const nfs4::Stateid& stateid);

  CloseQueue& closes_;
  const size_t held_max_;
  mutable Mutex mutex_;
  // Guarded by mutex_.
  Order order_;
  std::unordered_map<const Inode*, Order::iterator> places_;
  Counts counts_;
  uint64_t era_ = 0;
  std::atomic<size_t> creating_ = 0;
};

}  // namespace pnfsrdma::fuse_client
