// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "shared/base/clock.h"

namespace pnfsrdma::simulated {

class Fiber;
using Timers = std::multimap<SteadyTime, Fiber*>;

// One flow of control with a stack of its own (a guard page below it). Owned by the Scheduler, which alone
// switches.
class Fiber {
 public:
  Fiber(uint64_t number, std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  const uint64_t number;
  std::function<void()> body;
  // `entry` runs first on the new stack.
  void prepare(void (*entry)());
  ucontext_t context{};

  // Whose it is: it ends with its host.
  uint64_t host = 0;
  bool killed = false;
  bool ended = false;
  bool ready = false;
  // Where it waits, for who reads of a deadlock.
  const char* waits_for = "";
  bool timed = false;
  bool timed_out = false;
  Timers::iterator timer;
  std::vector<Fiber*> joiners;

 private:
  void* stack_;
};

}  // namespace pnfsrdma::simulated
