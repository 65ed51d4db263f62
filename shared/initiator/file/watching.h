// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "shared/base/sync.h"
#include "shared/initiator/file/background.h"

namespace pnfsrdma::initiator {

// What the watches of all files of a mount share: their numbers, one thread that has bricks watch again what was lost,
// and one that waits for nobody and tells programs of what is not watched meanwhile. Each is made when it first has
// something to do. Thread-safe.
class Watching {
 public:
  uint64_t next_number() { return ++numbers_; }
  // Behind stop() nothing is done.
  void after(Milliseconds delay, Background::Task task) { post(waiting_, delay, std::move(task)); }
  // The task does not wait.
  void tell_after(Milliseconds delay, Background::Task task) { post(telling_, delay, std::move(task)); }
  void stop() {
    std::unique_ptr<Background> waited, told;  // end without the mutex, which their tasks may want
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waited = std::move(waiting_);
    told = std::move(telling_);
  }

 private:
  void post(std::unique_ptr<Background>& thread, Milliseconds delay, Background::Task task) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    if (!thread) thread = std::make_unique<Background>();
    thread->after(delay, std::move(task));
  }

  std::atomic<uint64_t> numbers_ = 0;
  Mutex mutex_;
  std::unique_ptr<Background> waiting_, telling_;
  bool stopped_ = false;
};

}  // namespace pnfsrdma::initiator
