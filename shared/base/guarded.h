// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "shared/base/sync.h"

namespace pnfsrdma {

// A value that can only be reached with its mutex held. `auto queue = guarded.lock(); queue->push_back(x);`
template <typename T>
class Guarded {
 public:
  template <typename... Args>
  explicit Guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}

  // Holds the mutex as long as it lives. Never keep one across a wire call.
  class Lock {
   public:
    Lock(Mutex& mutex, T& value) : lock_(mutex), value_(value) {}
    T* operator->() { return &value_; }
    T& operator*() { return value_; }
    // Waits on `condition` until `ready(value)`; the mutex is released meanwhile.
    template <typename Ready>
    void wait(Condition& condition, Ready ready) {
      condition.wait(lock_, [&] { return ready(value_); });
    }
    // The same with a deadline on the steady clock. False when it passed first.
    template <typename TimePoint, typename Ready>
    bool wait_until(Condition& condition, TimePoint deadline, Ready ready) {
      return condition.wait_until(lock_, deadline, [&] { return ready(value_); });
    }
    void unlock() { lock_.unlock(); }
    void relock() { lock_.lock(); }

   private:
    std::unique_lock<Mutex> lock_;
    T& value_;
  };

  Lock lock() { return Lock(mutex_, value_); }

 private:
  Mutex mutex_;
  T value_;
};

}  // namespace pnfsrdma
