// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <condition_variable>  // std::cv_status
#include <functional>
#include <mutex>  // std::unique_lock
#include <utility>
#include <vector>

#include "shared/base/clock.h"

// What stands behind the names of sync.h in the simulator (PNFSRDMA_SIM): fibers of one thread, a scheduler
// that chooses by a seed, and virtual time. Declared here, because the sources under test include it;
// tests/sim implements it.
namespace pnfsrdma::simulated {

class Fiber;

// Another fiber may run at each lock() and unlock().
class Mutex {
 public:
  void lock();
  bool try_lock();
  void unlock();

 private:
  friend class Condition;
  void unlock_quietly();
  Fiber* holder_ = nullptr;
  std::vector<Fiber*> waiting_;
};

class Condition {
 public:
  void wait(std::unique_lock<Mutex>& lock) { (void)wait_until(lock, SteadyTime::max()); }
  std::cv_status wait_until(std::unique_lock<Mutex>& lock, SteadyTime deadline);
  void notify_one();
  void notify_all();

  template <typename Ready>
  void wait(std::unique_lock<Mutex>& lock, Ready ready) {
    while (!ready()) wait(lock);
  }
  template <typename Ready>
  bool wait_until(std::unique_lock<Mutex>& lock, SteadyTime deadline, Ready ready) {
    while (!ready()) {
      if (wait_until(lock, deadline) == std::cv_status::timeout) return ready();
    }
    return true;
  }
  std::cv_status wait_for(std::unique_lock<Mutex>& lock, SteadyTime::duration duration);

 private:
  std::vector<Fiber*> waiting_;
};

class Thread {
 public:
  Thread() = default;
  template <typename Body>
  explicit Thread(Body body) : Thread(std::function<void()>(std::move(body)), 0) {}
  Thread(Thread&& other) noexcept : fiber_(std::exchange(other.fiber_, nullptr)) {}
  Thread& operator=(Thread&& other) noexcept {
    std::swap(fiber_, other.fiber_);
    return *this;
  }
  bool joinable() const { return fiber_ != nullptr; }
  void join();
  // Of the thread that all fibers share: for its name.
  static pthread_t native_handle() { return pthread_self(); }

 private:
  Thread(std::function<void()> body, int);
  Fiber* fiber_ = nullptr;
};

void sleep_until(SteadyTime time);
void yield_thread();
SteadyTime now();

}  // namespace pnfsrdma::simulated
