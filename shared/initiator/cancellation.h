// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace pnfsrdma::initiator {

// Whether a call has been cancelled: looked at, now and then, while its thread waits for a server. When nobody
// wants the answer any more, the wait ends with EINTR. Used by one thread.
class Cancellation {
 public:
  virtual ~Cancellation() = default;
  // True, once and then always: the process has been killed. Must not block; called many times a second.
  virtual bool requested() = 0;
};

// While it lives, the waits of this thread look at `cancellation`. A thread-local, not an argument: the waits
// are far below, and behind interfaces (Mds) that do not care.
class CancellationScope {
 public:
  explicit CancellationScope(Cancellation& cancellation) : before_(std::exchange(current_, &cancellation)) {}
  ~CancellationScope() { current_ = before_; }
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

  // False for threads that nobody can cancel: recalls, recovery, the background.
  static bool cancelled() { return current_ != nullptr && current_->requested(); }

 private:
  static inline thread_local Cancellation* current_ = nullptr;
  Cancellation* before_;
};

}  // namespace pnfsrdma::initiator
