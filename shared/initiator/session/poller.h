// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "shared/base/clock.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"

namespace pnfsrdma::initiator {

// What the background thread sleeps on: the session's socket (only while no caller polls it), a timer, and a
// wake-up.
//
// Callers must not pay for it: while calls come, the socket is disarmed (EPOLLONESHOT without events), so
// that a reply wakes only the caller in recv(). The first call after a pause disarms it (epoll_ctl) and
// starts the timer (timerfd_settime); the timer fires every idle_delay until a whole period went by without a
// call, then the background thread arms the socket again. All methods are thread-safe except wait().
class Poller {
 public:
  Poller();

  Result<> open();
  // The socket of the session from now on, disarmed; -1 for none.
  void watch(int fd);
  void arm();
  // A caller is about to poll itself. No system call unless the socket is armed.
  void disarm(Milliseconds idle_delay) {
    if (armed_.load(std::memory_order_relaxed)) disarm_now(idle_delay);
  }
  bool armed() const { return armed_.load(); }
  void start_timer(Milliseconds delay);
  void wake();

  struct Events {
    bool socket = false;
    bool timer = false;
  };
  // Sleeps until something happens, at most `longest`. Background thread only.
  Events wait(Milliseconds longest);

 private:
  void disarm_now(Milliseconds idle_delay);

  FileDescriptor epoll_;
  FileDescriptor timer_;
  FileDescriptor wake_;
  std::atomic<int> socket_ = -1;
  std::atomic<bool> armed_ = false;
};

}  // namespace pnfsrdma::initiator
