// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "shared/base/clock.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"

namespace pnfsrdma::initiator {

struct Connection;

// Takes what bricks tell as it comes, by a thread of its own that sleeps on the connections where something is watched:
// nobody else need wait there. The thread is made for the first of them; what such a connection receives wakes it, for
// whomever it is. Thread-safe.
class EventPoller {
 public:
  // `io_timeout`: an answer that takes longer does not come. After half of that without a word a brick is asked.
  EventPoller(const Clock& clock, Milliseconds io_timeout) : clock_(clock), io_timeout_(io_timeout) {}
  ~EventPoller() { stop(); }
  EventPoller(const EventPoller&) = delete;
  EventPoller& operator=(const EventPoller&) = delete;

  // From here on, until it is dead. False: there are no descriptors.
  bool add(const std::shared_ptr<Connection>& connection);
  // The end of the mount.
  void stop();

 private:
  bool open();
  void run();
  std::shared_ptr<Connection> at(uint64_t number);
  void look(uint64_t number, bool& looked);
  void look_at_all();

  const Clock& clock_;
  const Milliseconds io_timeout_;
  Mutex mutex_;  // everything below
  std::map<uint64_t, std::shared_ptr<Connection>> connections_;
  uint64_t next_ = 1;
  FileDescriptor epoll_, wake_;
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace pnfsrdma::initiator
