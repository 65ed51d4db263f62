// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shared/base/event_loop.h"

namespace pnfsrdma {

// The service manager's view of this daemon: sd_notify(3). Belongs to the loop's thread, and goes before the
// loop. Where nobody has asked (no NOTIFY_SOCKET, no WATCHDOG_USEC) nothing is sent.
class ServiceManager {
 public:
  explicit ServiceManager(EventLoop& loop) : loop_(loop) {}
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Clients are served from now on. Begins to ping the watchdog out of the loop, twice as often as it wants.
  void ready();
  // Behind ready(), before work that keeps the loop: the watchdog waits for so long from now on, until ready()
  // is called again.
  void busy(Milliseconds longest);
  void stopping();
  // What `systemctl status` shows of it: one line.
  static void status(const std::string& text);

 private:
  void ping();
  static void set_patience(uint64_t microseconds);

  EventLoop& loop_;
  Milliseconds period_{0};  // of pings; 0: nobody waits for them
  uint64_t patience_ = 0;   // of the watchdog, microseconds
  EventLoop::TimerId timer_ = 0;
};

}  // namespace pnfsrdma
