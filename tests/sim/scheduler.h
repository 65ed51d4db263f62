// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "shared/base/simulated_sync.h"
#include "tests/sim/dice.h"
#include "tests/sim/fiber.h"

namespace pnfsrdma::simulated {

// Which fiber runs, and what time it is. Time stands still but for a little at each switch and each look at
// the clock, and jumps to the next timer when nobody can run. One for a process; everything of a run happens
// inside run().
class Scheduler {
 public:
  explicit Scheduler(uint64_t seed);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  static Scheduler& current();

  // Returns when `body` has returned. `stuck` is told, with what each fiber waits for, when none can run any
  // more; it must not return.
  void run(std::function<void()> body, std::function<void(const std::string&)> stuck);

  Fiber* spawn(std::function<void()> body);
  void join(Fiber* fiber);
  // Waits until somebody calls wake(), or until `deadline`: false.
  bool park(SteadyTime deadline, const char* waits_for);
  // Until somebody calls wake(); others run although this one is Undisturbed.
  void park_for_mutex();
  void wake(Fiber* fiber);
  void yield();
  // Perhaps lets somebody else run.
  void preempt() {
    if (running_ != nullptr && undisturbed_ == 0 && dice_.one_in(kPreemption)) yield();
  }
  // While it lives no other fiber runs: for the model's own steps, which may take locks of the sources under
  // test, but wait for nothing else. (Whoever has such a lock lets go of it first: so take it as the first thing.)
  class Undisturbed {
   public:
    Undisturbed() { ++current().undisturbed_; }
    ~Undisturbed() { --current().undisturbed_; }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;
  };
  // While it lives the running fiber, and what that spawns, belongs to this host (0: one that never dies). Who
  // comes back to a host that has died meanwhile goes no further.
  class OnHost {
   public:
    explicit OnHost(uint64_t host);
    ~OnHost();
    OnHost(const OnHost&) = delete;
    OnHost& operator=(const OnHost&) = delete;

   private:
    const uint64_t before_;
  };
  uint64_t make_host() { return next_host_++; }
  // Its fibers run no more, wherever they are: nothing is unwound, and what they own stays as it is. Those who
  // join them go on.
  void kill(uint64_t host);
  bool alive(uint64_t host) const { return !dead_hosts_.contains(host); }
  // None: outside of run().
  Fiber* running() const { return running_; }
  SteadyTime now() { return now_ += std::chrono::nanoseconds(20); }
  // Without any effect.
  SteadyTime look() const { return now_; }
  std::string describe() const;

 private:
  static constexpr uint64_t kPreemption = 6;
  static void enter();
  Fiber* choose();
  void switch_away();
  void stop(Fiber* fiber);
  void move_to(uint64_t host);

  sim::Dice dice_;
  SteadyTime now_{std::chrono::hours(1)};
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> ready_;
  Timers timers_;
  bool park_anyway(SteadyTime deadline, const char* waits_for);

  Fiber* running_ = nullptr;
  ucontext_t outside_{};
  bool finished_ = false;
  int undisturbed_ = 0;
  uint64_t next_number_ = 1;
  uint64_t next_host_ = 1;
  std::set<uint64_t> dead_hosts_;
  std::function<void(const std::string&)> stuck_;
};

// Fibers that wait for an event of the simulation itself, which needs no mutex: nothing else runs between two
// switches.
class Bell {
 public:
  bool wait(SteadyTime deadline = SteadyTime::max(), const char* waits_for = "an event");
  void ring();

 private:
  std::vector<Fiber*> waiting_;
};

}  // namespace pnfsrdma::simulated
