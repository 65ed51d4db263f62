// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>

#include "fuse-client/fuse_header.h"
#include "fuse-client/lock_calls.h"
#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// Requests for a lock that somebody else has (F_SETLKW, flock without LOCK_NB). They wait here and not in a
// worker: many may wait, and the one who unlocks needs a worker too. Each is tried again when something was
// unlocked in this mount, when the server says so (CB_NOTIFY_LOCK), and by itself in growing distances; an
// interrupt ends it. Owned by the mount. Thread-safe.
class BlockedLocks {
 public:
  struct Waiting {
    fuse_req_t request = nullptr;
    fuse_ino_t node = 0;
    LockWish wish;
    std::atomic<bool> interrupted = false;
    BlockedLocks* owner = nullptr;
  };
  // Tries once, with EINTR for one that is `interrupted`; true when the request has been answered.
  using TryAgain = std::function<bool(Waiting&)>;

  BlockedLocks() = default;
  ~BlockedLocks() { stop(); }
  BlockedLocks(const BlockedLocks&) = delete;
  BlockedLocks& operator=(const BlockedLocks&) = delete;

  void start(TryAgain try_again);
  // Answers all that wait with EINTR. When no worker runs any more.
  void stop();

  void add(std::unique_ptr<Waiting> waiting);
  // Before a request is answered: its interrupt is not ours any more.
  static void let_go(Waiting& waiting) { fuse_req_interrupt_func(waiting.request, nullptr, nullptr); }
  // Locks of this file may be free.
  void look(const Inode& inode);

 private:
  struct Place {
    std::unique_ptr<Waiting> waiting;
    SteadyTime next_try;
    Milliseconds pause{0};
  };
  using Places = std::list<Place>;

  void run();
  void wake();
  Places::iterator next_due(SteadyTime now, SteadyTime& wake_at);

  TryAgain try_again_;
  Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  Places places_;
  Waiting* trying_ = nullptr;  // taken out of places_
  bool look_again_ = false;    // at trying_: something has changed meanwhile
  bool stopping_ = true;
  Thread thread_;
};

}  // namespace pnfsrdma::fuse_client
