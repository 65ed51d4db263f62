// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace pnfsrdma::initiator {

// On whose behalf a thread works. It is asked, now and then, while the thread waits for a server: when nobody
// wants the answer any more, the wait ends with EINTR. Used by one thread.
class Asker {
 public:
  virtual ~Asker() = default;
  // True, once and then always: the process has been killed. Must not block; called many times a second.
  virtual bool gone() = 0;
};

// While it lives, this thread works for `asker`. A thread-local, not an argument: the waits are far below,
// and behind interfaces (MetadataChannel) that do not care who asks.
class AskerScope {
 public:
  explicit AskerScope(Asker& asker) : before_(std::exchange(current_, &asker)) {}
  ~AskerScope() { current_ = before_; }
  AskerScope(const AskerScope&) = delete;
  AskerScope& operator=(const AskerScope&) = delete;

  // False for threads that work for nobody: recalls, recovery, the background.
  static bool asker_gone() { return current_ != nullptr && current_->gone(); }

 private:
  static inline thread_local Asker* current_ = nullptr;
  Asker* before_;
};

}  // namespace pnfsrdma::initiator
