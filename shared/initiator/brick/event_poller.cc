// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/event_poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "shared/base/signals_blocked.h"
#include "shared/initiator/brick/device.h"

namespace pnfsrdma::initiator {

namespace {

// A connection that dies need not make its descriptor readable: so often all of them are looked at.
constexpr Milliseconds kEventsLook{100};
// While another thread polls: it takes events, too, and should not be disturbed.
constexpr std::chrono::microseconds kOtherPolls{50};

}  // namespace

bool EventPoller::open() {
  if (thread_.joinable()) return true;
  epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  if (!epoll_ || !wake_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) return false;
  const SignalsBlocked blocked;  // it is a thread of the program's that comes here
  thread_ = Thread([this] { run(); });
  return true;
}

bool EventPoller::add(const std::shared_ptr<Connection>& connection) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, known] : connections_) {
    if (known == connection) return true;
  }
  if (stopping_ || !open()) return false;
  const uint64_t number = next_++;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->queue_pair.queue_pair().fd(), &event) != 0)
    return false;
  connections_.emplace(number, connection);
  return true;
}

std::shared_ptr<Connection> EventPoller::at(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(number);
  return found == connections_.end() ? nullptr : found->second;
}

void EventPoller::look(uint64_t number, bool& looked) {
  const std::shared_ptr<Connection> connection = at(number);
  if (!connection) return;
  looked = connection->queue_pair.poll(clock_.now()) || looked;
  if (!connection->queue_pair.ended()) return;
  const std::lock_guard lock(mutex_);
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection->queue_pair.queue_pair().fd(), nullptr);
  connections_.erase(number);
}

void EventPoller::look_at_all() {
  std::vector<uint64_t> numbers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, connection] : connections_) numbers.push_back(number);
  }
  bool looked = false;
  for (const uint64_t number : numbers) {
    look(number, looked);
    if (const auto connection = at(number))
      connection->events.feel_pulse(clock_.now(), io_timeout_ / 2, io_timeout_);
  }
}

void EventPoller::run() {
  std::array<epoll_event, 16> ready;
  SteadyTime next_look = steady_now() + kEventsLook;
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()),
                                   static_cast<int>(kEventsLook.count()));
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    bool looked = count <= 0;
    for (int i = 0; i < count; ++i) look(ready[static_cast<size_t>(i)].data.u64, looked);
    if (!looked) sleep_for(kOtherPolls);
    if (steady_now() < next_look) continue;
    look_at_all();
    next_look = steady_now() + kEventsLook;
  }
}

void EventPoller::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    const uint64_t one = 1;
    if (wake_) (void)!::write(wake_.get(), &one, sizeof one);
  }
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  connections_.clear();
}

}  // namespace pnfsrdma::initiator
