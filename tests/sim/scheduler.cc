// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/scheduler.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::simulated {

namespace {

Scheduler* the_scheduler = nullptr;

template <typename List, typename Value>
bool take_out(List& list, const Value& value) {
  const auto found = std::find(list.begin(), list.end(), value);
  if (found == list.end()) return false;
  list.erase(found);
  return true;
}

}  // namespace

Scheduler::Scheduler(uint64_t seed) : dice_(seed) {
  CHECK(the_scheduler == nullptr);
  the_scheduler = this;
}

Scheduler::~Scheduler() {
  the_scheduler = nullptr;
}

Scheduler& Scheduler::current() {
  CHECK(the_scheduler != nullptr);
  return *the_scheduler;
}

void Scheduler::enter() {
  Scheduler& self = current();
  Fiber* fiber = self.running_;
  fiber->body();
  fiber->body = nullptr;
  fiber->ended = true;
  for (Fiber* joiner : fiber->joiners) self.wake(joiner);
  self.switch_away();
}

void Scheduler::run(std::function<void()> body, std::function<void(const std::string&)> stuck) {
  stuck_ = std::move(stuck);
  Fiber* first = spawn([this, what = std::move(body)] {
    what();
    finished_ = true;
  });
  take_out(ready_, first);
  first->ready = false;
  running_ = first;
  CHECK(swapcontext(&outside_, &first->context) == 0);
  running_ = nullptr;
}

Fiber* Scheduler::spawn(std::function<void()> body) {
  fibers_.push_back(std::make_unique<Fiber>(next_number_++, std::move(body)));
  Fiber* fiber = fibers_.back().get();
  if (running_ != nullptr) fiber->host = running_->host;
  fiber->prepare(&Scheduler::enter);
  wake(fiber);
  return fiber;
}

void Scheduler::join(Fiber* fiber) {
  while (!fiber->ended) {
    fiber->joiners.push_back(running_);
    park(SteadyTime::max(), "the end of a fiber");
  }
  // Others may still know one that was killed, as somebody who waits.
  if (!fiber->killed) std::erase_if(fibers_, [&](const auto& owned) { return owned.get() == fiber; });
}

void Scheduler::stop(Fiber* fiber) {
  if (fiber->timed) timers_.erase(fiber->timer);
  if (fiber->ready) take_out(ready_, fiber);
  fiber->timed = fiber->ready = false;
  fiber->killed = fiber->ended = true;
  for (Fiber* joiner : fiber->joiners) wake(joiner);
}

void Scheduler::kill(uint64_t host) {
  CHECK(running_->host != host);
  dead_hosts_.insert(host);
  for (const auto& fiber : fibers_) {
    if (fiber->host == host && !fiber->ended) stop(fiber.get());
  }
}

void Scheduler::move_to(uint64_t host) {
  running_->host = host;
  if (alive(host)) return;
  stop(running_);
  switch_away();
}

Scheduler::OnHost::OnHost(uint64_t host) : before_(current().running_->host) {
  current().move_to(host);
}

Scheduler::OnHost::~OnHost() {
  current().move_to(before_);
}

Fiber* Scheduler::choose() {
  const auto expire = [this] {
    while (!timers_.empty() && timers_.begin()->first <= now_) {
      Fiber* due = timers_.begin()->second;
      due->timed_out = true;
      wake(due);
    }
  };
  expire();
  if (ready_.empty()) {
    if (timers_.empty()) {
      stuck_(describe());
      CHECK(false);
    }
    now_ = std::max(now_, timers_.begin()->first);
    expire();
  }
  const size_t index = dice_.below(ready_.size());
  Fiber* chosen = ready_[index];
  ready_[index] = ready_.back();
  ready_.pop_back();
  chosen->ready = false;
  return chosen;
}

void Scheduler::switch_away() {
  Fiber* from = running_;
  if (finished_) {
    CHECK(swapcontext(&from->context, &outside_) == 0);
    return;
  }
  now_ += std::chrono::nanoseconds(100);
  Fiber* to = choose();
  if (to == from) return;
  running_ = to;
  CHECK(swapcontext(&from->context, &to->context) == 0);
}

bool Scheduler::park(SteadyTime deadline, const char* waits_for) {
  CHECK(running_ != nullptr && undisturbed_ == 0);
  return park_anyway(deadline, waits_for);
}

void Scheduler::park_for_mutex() {
  const int undisturbed = std::exchange(undisturbed_, 0);
  (void)park_anyway(SteadyTime::max(), "a mutex");
  undisturbed_ = undisturbed;
}

bool Scheduler::park_anyway(SteadyTime deadline, const char* waits_for) {
  Fiber* self = running_;
  self->timed_out = false;
  self->waits_for = waits_for;
  if (deadline != SteadyTime::max()) {
    self->timer = timers_.emplace(deadline, self);
    self->timed = true;
  }
  switch_away();
  self->waits_for = "";
  return !self->timed_out;
}

void Scheduler::wake(Fiber* fiber) {
  if (fiber->ready || fiber->ended) return;
  if (fiber->timed) timers_.erase(fiber->timer);
  fiber->timed = false;
  fiber->ready = true;
  ready_.push_back(fiber);
}

void Scheduler::yield() {
  if (running_ == nullptr) return;
  wake(running_);
  switch_away();
}

std::string Scheduler::describe() const {
  std::string text;
  for (const auto& fiber : fibers_) {
    if (fiber->ended) continue;
    text += "  fiber " + std::to_string(fiber->number) + " of host " + std::to_string(fiber->host) +
            " waits for " + fiber->waits_for + "\n";
  }
  return text;
}

bool Bell::wait(SteadyTime deadline, const char* waits_for) {
  Scheduler& scheduler = Scheduler::current();
  waiting_.push_back(scheduler.running());
  if (scheduler.park(deadline, waits_for)) return true;
  take_out(waiting_, scheduler.running());
  return false;
}

void Bell::ring() {
  for (Fiber* fiber : std::exchange(waiting_, {})) Scheduler::current().wake(fiber);
}

void Mutex::lock() {
  Scheduler& scheduler = Scheduler::current();
  scheduler.preempt();
  Fiber* self = scheduler.running();
  CHECK(self == nullptr || holder_ != self);
  while (holder_ != nullptr) {
    waiting_.push_back(self);
    scheduler.park_for_mutex();
  }
  holder_ = self;
}

bool Mutex::try_lock() {
  if (holder_ != nullptr) return false;
  holder_ = Scheduler::current().running();
  return true;
}

void Mutex::unlock_quietly() {
  Scheduler& scheduler = Scheduler::current();
  CHECK(holder_ == scheduler.running());
  holder_ = nullptr;
  if (waiting_.empty()) return;
  for (Fiber* fiber : std::exchange(waiting_, {})) scheduler.wake(fiber);
}

void Mutex::unlock() {
  unlock_quietly();
  Scheduler::current().preempt();
}

std::cv_status Condition::wait_until(std::unique_lock<Mutex>& lock, SteadyTime deadline) {
  Scheduler& scheduler = Scheduler::current();
  Fiber* self = scheduler.running();
  waiting_.push_back(self);
  // Not through unlock(): nobody may come between.
  Mutex* mutex = lock.release();
  mutex->unlock_quietly();
  const bool woken = scheduler.park(deadline, "a condition");
  if (!woken) take_out(waiting_, self);
  mutex->lock();
  lock = std::unique_lock(*mutex, std::adopt_lock);
  return woken ? std::cv_status::no_timeout : std::cv_status::timeout;
}

std::cv_status Condition::wait_for(std::unique_lock<Mutex>& lock, SteadyTime::duration duration) {
  return wait_until(lock, now() + duration);
}

void Condition::notify_one() {
  if (waiting_.empty()) return;
  Fiber* first = waiting_.front();
  waiting_.erase(waiting_.begin());
  Scheduler::current().wake(first);
}

void Condition::notify_all() {
  for (Fiber* fiber : std::exchange(waiting_, {})) Scheduler::current().wake(fiber);
}

Thread::Thread(std::function<void()> body, int) : fiber_(Scheduler::current().spawn(std::move(body))) {}

void Thread::join() {
  Scheduler::current().join(std::exchange(fiber_, nullptr));
}

void sleep_until(SteadyTime time) {
  Scheduler& scheduler = Scheduler::current();
  (void)scheduler.park(std::max(time, scheduler.now()), "time to pass");
}

void yield_thread() {
  Scheduler::current().yield();
}

SteadyTime now() {
  return Scheduler::current().now();
}

}  // namespace pnfsrdma::simulated
