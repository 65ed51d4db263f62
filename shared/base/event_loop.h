// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/guarded.h"
#include "shared/base/owned.h"
#include "shared/base/turn_times.h"

namespace pnfsrdma {

// The control loop of a daemon: one thread that waits on file descriptors and timers and runs what they ask
// for (epoll(7)). All methods but post() and stop() belong to the thread that runs the loop (or to whoever
// builds it before it runs). Nothing called from here may block.
class EventLoop {
 public:
  using Task = std::function<void()>;
  using FdHandler = std::function<void(uint32_t epoll_events)>;
  using TimerId = uint64_t;

  // A turn spends so long on timers at most, and on what was posted as long as on descriptors, within these limits:
  // what is left of them has the next one, behind the descriptors. So the thousand answers of one sync, or a flood of
  // calls that take their turns, do not keep everybody else waiting.
  static constexpr Milliseconds kSlice{4};
  static constexpr std::chrono::microseconds kShortSlice{100};

  explicit EventLoop(const Clock& clock);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Watches `fd` (level-triggered) for EPOLLIN/EPOLLOUT. The fd stays the caller's; unwatch it before closing
  // it.
  void watch(int fd, uint32_t epoll_events, FdHandler handler);
  void change(int fd, uint32_t epoll_events);
  void unwatch(int fd);

  // Runs `task` once, not before `delay` has passed. cancel() of one that has run is harmless.
  TimerId after(Milliseconds delay, Task task);
  void cancel(TimerId timer);

  // Runs `task` in the loop, soon. Thread-safe: this is how other threads talk to the loop.
  void post(Task task);
  // Runs `task` at the end of the current turn, before the loop waits again: batches work of one turn.
  void at_turn_end(Task task);

  // Runs `task` in the next turn, after what has come until then: for work that takes its turn with others.
  void at_next_turn(Task task);

  // Runs `task` behind everything else of a turn, one such task each turn: for long work that many ask for at once.
  // Whoever asks for little then waits for one of them, not for all.
  void at_own_turn(Task task);

  // Runs until stop(). Thread-safe to stop from any thread or a signal watcher.
  void run();
  void stop();
  // One turn: waits at most `longest`, runs what is due. For tests.
  void run_once(Milliseconds longest);

  SteadyTime now() const { return clock_.now(); }
  const Clock& clock() const { return clock_; }

  // How long turns take, and where a part of the loop's work is named. The loop's thread only.
  TurnTimes& turns() { return turns_; }
  const TurnTimes& turns() const { return turns_; }
  // Names what is done while it lives, for the log of slow turns. `what` is a literal. Two clock reads: for
  // work that is rare.
  class Step {
   public:
    Step(EventLoop& loop, std::string_view what, uint64_t client = 0)
        : loop_(loop), what_(what), client_(client), begun_(loop.now()) {}
    ~Step() { loop_.turns_.step(what_, client_, loop_.now() - begun_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    EventLoop& loop_;
    const std::string_view what_;
    const uint64_t client_;
    const SteadyTime begun_;
  };

 private:
  SteadyTime run_turn(Milliseconds longest, SteadyTime now);
  void run_due(SteadyTime begun);
  void run_timers();
  void run_own_turn();
  int wait_milliseconds(Milliseconds longest, SteadyTime now) const;

  const Clock& clock_;
  FileDescriptor epoll_;
  FileDescriptor wake_;
  std::atomic<bool> stopping_ = false;
  uint64_t next_timer_ = 1;
  std::map<std::pair<SteadyTime, TimerId>, Task> timers_;
  std::unordered_map<TimerId, SteadyTime> timer_times_;
  std::unordered_map<int, std::shared_ptr<FdHandler>> handlers_;
  std::vector<Task> turn_end_;
  std::vector<Task> next_turn_;
  std::deque<Task> due_;  // of earlier turns, and of this one
  std::deque<Task> own_turn_;
  Guarded<std::vector<Task>> posted_;
  TurnTimes turns_;
};

}  // namespace pnfsrdma
