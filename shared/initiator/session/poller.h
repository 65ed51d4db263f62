// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "shared/base/clock.h"
#include "shared/base/result.h"

namespace pnfsrdma::initiator {

class SessionSocket;

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
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  Result<> open();
  // The socket of the session from now on, disarmed; null for none.
  void watch(const std::shared_ptr<SessionSocket>& socket);
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
  struct Impl;
  void disarm_now(Milliseconds idle_delay);

  const std::unique_ptr<Impl> impl_;
  std::atomic<bool> armed_ = false;
};

}  // namespace pnfsrdma::initiator
