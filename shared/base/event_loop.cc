// SPDX-License-Identifier: Apache-2.0
#include "shared/base/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "shared/base/check.h"

namespace pnfsrdma {
namespace {

constexpr int kEventsPerTurn = 64;

}  // namespace

EventLoop::EventLoop(const Clock& clock)
    : clock_(clock), epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(epoll_ && wake_);
  watch(wake_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
  });
}

EventLoop::~EventLoop() = default;

void EventLoop::watch(int fd, uint32_t epoll_events, FdHandler handler) {
  epoll_event event{.events = epoll_events, .data = {.fd = fd}};
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  handlers_[fd] = std::make_shared<FdHandler>(std::move(handler));
}

void EventLoop::change(int fd, uint32_t epoll_events) {
  epoll_event event{.events = epoll_events, .data = {.fd = fd}};
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0);
}

void EventLoop::unwatch(int fd) {
  if (handlers_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

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
  {
    auto posted = posted_.lock();
    posted->push_back(std::move(task));
    if (posted->size() > 1) return;  // somebody has rung already
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(wake_.get(), &one, sizeof one);
}

void EventLoop::at_turn_end(Task task) {
  turn_end_.push_back(std::move(task));
}

void EventLoop::at_next_turn(Task task) {
  next_turn_.push_back(std::move(task));
}

void EventLoop::at_own_turn(Task task) {
  own_turn_.push_back(std::move(task));
}

void EventLoop::run() {
  SteadyTime now = clock_.now();
  while (!stopping_.load()) now = run_turn(Milliseconds(1000), now);
}

void EventLoop::stop() {
  stopping_.store(true);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(wake_.get(), &one, sizeof one);
}

void EventLoop::run_once(Milliseconds longest) {
  run_turn(longest, clock_.now());
}

// The end of a turn is where the next begins to wait: one read of the clock is for both.
SteadyTime EventLoop::run_turn(Milliseconds longest, SteadyTime now) {
  std::array<epoll_event, kEventsPerTurn> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsPerTurn, wait_milliseconds(longest, now));
  CHECK(count >= 0 || errno == EINTR);
  const SteadyTime begun = clock_.now();
  for (int i = 0; i < count; ++i) {
    // Looked up anew each time: an earlier handler of this turn may have unwatched it.
    const auto found = handlers_.find(events[i].data.fd);
    if (found == handlers_.end()) continue;
    const auto handler = found->second;
    (*handler)(events[i].events);
  }
  run_due(begun);
  run_timers();
  run_own_turn();
  while (!turn_end_.empty()) {
    for (Task& task : std::exchange(turn_end_, {})) task();
  }
  const SteadyTime ended = clock_.now();
  turns_.end_turn(begun, ended);
  return ended;
}

void EventLoop::run_due(SteadyTime begun) {
  std::ranges::move(std::exchange(next_turn_, {}), std::back_inserter(due_));
  std::vector<Task> posted;
  std::swap(posted, *posted_.lock());
  std::ranges::move(posted, std::back_inserter(due_));
  const SteadyTime now = clock_.now();
  const SteadyTime end = now + std::clamp<SteadyTime::duration>(now - begun, kShortSlice, kSlice);
  while (!due_.empty()) {
    const Task task = std::move(due_.front());
    due_.pop_front();
    task();
    if (clock_.now() >= end) break;
  }
}

void EventLoop::run_timers() {
  const SteadyTime now = clock_.now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    Task task = std::move(timers_.begin()->second);
    timer_times_.erase(timers_.begin()->first.second);
    timers_.erase(timers_.begin());
    task();
    if (clock_.now() >= now + kSlice) break;
  }
}

void EventLoop::run_own_turn() {
  if (own_turn_.empty()) return;
  const Task task = std::move(own_turn_.front());
  own_turn_.pop_front();
  task();
}

int EventLoop::wait_milliseconds(Milliseconds longest, SteadyTime now) const {
  if (!turn_end_.empty() || !next_turn_.empty() || !due_.empty() || !own_turn_.empty()) return 0;
  if (timers_.empty()) return static_cast<int>(longest.count());
  const auto until = std::chrono::ceil<Milliseconds>(timers_.begin()->first.first - now);
  return static_cast<int>(std::clamp(until, Milliseconds(0), longest).count());
}

}  // namespace pnfsrdma
