// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef PNFSRDMA_SIM
#include "shared/base/simulated_sync.h"
#else
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#endif

#include "shared/base/clock.h"

namespace pnfsrdma {

// The only door to threads, locks, waiting and the steady clock: what blocks or looks at the time goes
// through these names, so that the simulator (PNFSRDMA_SIM, tests/sim) can run the same sources in virtual
// time. tests/unit/structure holds it. Locks are taken with std::lock_guard, std::unique_lock and
// std::shared_lock.
#ifdef PNFSRDMA_SIM
using simulated::Condition;
using simulated::Mutex;
using simulated::Thread;

template <typename Duration>
void sleep_for(Duration duration) {
  simulated::sleep_until(simulated::now() + duration);
}
inline void sleep_until(SteadyTime time) {
  simulated::sleep_until(time);
}
inline void yield_thread() {
  simulated::yield_thread();
}
inline SteadyTime steady_now() {
  return simulated::now();
}
inline std::chrono::nanoseconds slept_so_far() {
  return {};
}
#else
using Mutex = std::mutex;
using SharedMutex = std::shared_mutex;
using Condition = std::condition_variable;
using Thread = std::thread;

template <typename Duration>
void sleep_for(Duration duration) {
  std::this_thread::sleep_for(duration);
}
inline void sleep_until(SteadyTime time) {
  std::this_thread::sleep_until(time);
}
// Lets other threads run; for loops that wait for a few microseconds.
inline void yield_thread() {
  std::this_thread::yield();
}
inline SteadyTime steady_now() {
  return std::chrono::steady_clock::now();
}
// How long this host has been suspended since its start: time in which steady_now() stands still.
std::chrono::nanoseconds slept_so_far();
#endif

}  // namespace pnfsrdma
