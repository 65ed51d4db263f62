// SPDX-License-Identifier: Apache-2.0
#include "shared/base/event_loop.h"

#include <algorithm>

#include "shared/base/check.h"
#include "tests/sim/scheduler.h"

// The control loop of a daemon in virtual time: event_loop.cc without a kernel. Nothing has a file descriptor
// here; what wakes a loop is a post or a timer. A post takes no lock, so that who posts to a loop whose process
// has died meanwhile does not wait for that process.
namespace pnfsrdma {

namespace {

struct Posts {
  std::vector<EventLoop::Task> tasks;
  simulated::Bell came;
};

Posts& posts_of(const EventLoop* loop) {
  static std::map<const EventLoop*, Posts> all;
  return all[loop];
}

}  // namespace

EventLoop::EventLoop(const Clock& clock) : clock_(clock) {
  posts_of(this).tasks.clear();
}

EventLoop::~EventLoop() = default;

void EventLoop::watch(int, uint32_t, FdHandler) {
  CHECK(false);
}

void EventLoop::change(int, uint32_t) {
  CHECK(false);
}

void EventLoop::unwatch(int) {}

EventLoop::TimerId EventLoop::after(Milliseconds delay, Task task) {
  const TimerId timer = next_timer_++;
  const SteadyTime when = clock_.now() + delay;
  timers_.emplace(std::pair(when, timer), std::move(task));
  timer_times_.emplace(timer, when);
  return timer;
}

void EventLoop::cancel(TimerId timer) {
  const auto found = timer_times_.find(timer);
  if (found == timer_times_.end()) return;
  timers_.erase(std::pair(found->second, timer));
  timer_times_.erase(found);
}

void EventLoop::post(Task task) {
  Posts& posts = posts_of(this);
  posts.tasks.push_back(std::move(task));
  posts.came.ring();
}

void EventLoop::at_turn_end(Task task) {
  turn_end_.push_back(std::move(task));
}

void EventLoop::at_next_turn(Task task) {
  next_turn_.push_back(std::move(task));
}

// Nothing in the simulator reads from sockets: no long work of many waits here.
void EventLoop::at_own_turn(Task task) {
  next_turn_.push_back(std::move(task));
}

void EventLoop::run() {
  SteadyTime now = clock_.now();
  while (!stopping_.load()) now = run_turn(Milliseconds(1000), now);
}

void EventLoop::stop() {
  stopping_.store(true);
  posts_of(this).came.ring();
}

void EventLoop::run_once(Milliseconds longest) {
  run_turn(longest, clock_.now());
}

SteadyTime EventLoop::run_turn(Milliseconds longest, SteadyTime now) {
  Posts& posts = posts_of(this);
  if (posts.tasks.empty() && turn_end_.empty() && next_turn_.empty()) {
    SteadyTime until = now + longest;
    if (!timers_.empty()) until = std::min(until, timers_.begin()->first.first);
    (void)posts.came.wait(until, "an event of the control loop");
  }
  const SteadyTime begun = clock_.now();
  for (Task& task : std::exchange(next_turn_, {})) task();
  run_due(begun);
  run_timers();
  while (!turn_end_.empty()) {
    for (Task& task : std::exchange(turn_end_, {})) task();
  }
  const SteadyTime ended = clock_.now();
  turns_.end_turn(begun, ended);
  return ended;
}

void EventLoop::run_due(SteadyTime) {
  for (Task& task : std::exchange(posts_of(this).tasks, {})) task();
}

void EventLoop::run_timers() {
  const SteadyTime now = clock_.now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    Task task = std::move(timers_.begin()->second);
    timer_times_.erase(timers_.begin()->first.second);
    timers_.erase(timers_.begin());
    task();
  }
}

}  // namespace pnfsrdma
