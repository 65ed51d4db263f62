// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "shared/base/sync.h"
#include "shared/initiator/file/background.h"

namespace pnfsrdma::initiator {

// What the watches of all files of a mount share: their numbers, and one thread that has bricks watch again what was
// lost. The thread is made for the first of them. Thread-safe.
class Watching {
 public:
  uint64_t next_number() { return ++numbers_; }
  // Behind stop() nothing is done.
  void after(Milliseconds delay, Background::Task task) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    if (!thread_) thread_ = std::make_unique<Background>();
    thread_->after(delay, std::move(task));
  }
  void stop() {
    std::unique_ptr<Background> ended;  // without the mutex, which its task may want
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    ended = std::move(thread_);
  }

 private:
  std::atomic<uint64_t> numbers_ = 0;
  Mutex mutex_;
  std::unique_ptr<Background> thread_;
  bool stopped_ = false;
};

}  // namespace pnfsrdma::initiator
