// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"

namespace pnfsrdma::initiator {

struct Connection;

// Polls the connections that asynchronous I/O has been started on, and wakes who sleeps until some of it is
// complete. While anything is in flight a thread of its own polls, too, twenty times a second: deadlines pass
// although the application does not look, and what is complete leaves the gate of its layout. The thread is made
// for the first I/O. Thread-safe; one I/O allocates nothing, and costs no system call unless somebody sleeps.
class CompletionPoller {
 public:
  explicit CompletionPoller(const Clock& clock) : clock_(clock) {}
  ~CompletionPoller() { stop(); }
  CompletionPoller(const CompletionPoller&) = delete;
  CompletionPoller& operator=(const CompletionPoller&) = delete;

  // Around an I/O: begin() before it enters the gate, and exactly one end() or complete().
  void begin();
  void end() { in_flight_.fetch_sub(1); }
  // end(), and wakes who sleeps. After it can be seen that the I/O is complete.
  void complete();
  bool any() const { return in_flight_.load() > 0; }

  // Before something is started there. It stays until it is dead and nothing is in flight on it.
  void add(const std::shared_ptr<Connection>& connection);
  // SharedQueuePair::ring() of all connections.
  void ring();
  // SharedQueuePair::poll() of all connections.
  void poll();

  // poll() for the application's thread.
  void progress();
  // Readable when progress() may have something to do, and once after arm() when an I/O was completed by another
  // thread. Made when it is first asked for. Negative: no descriptor is available (errno).
  int fd();
  // progress(), and from here on whoever completes an I/O makes fd() readable. Before each sleep: arm(), then
  // look at what is awaited once more. One thread sleeps at a time.
  void arm();

  // The end of the mount: nothing is in flight any more.
  void stop();

 private:
  std::shared_ptr<Connection> at(size_t index);
  void remove(const std::shared_ptr<Connection>& connection);
  void watch(const Connection& connection);
  void wake_thread();
  void run();

  const Clock& clock_;
  std::atomic<size_t> in_flight_ = 0;

  std::atomic<bool> armed_ = false;
  std::atomic<bool> signalled_ = false;  // the event has been written to, and not read since
  std::atomic<int> event_fd_ = -1;       // that of event_

  Mutex mutex_;  // everything below
  std::vector<std::shared_ptr<Connection>> connections_;
  FileDescriptor event_;
  FileDescriptor epoll_;
  Condition changed_;
  std::atomic<bool> rests_ = true;  // the thread waits for begin(), or is not there
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace pnfsrdma::initiator
