// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/completion_poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "shared/base/signals_blocked.h"
#include "shared/initiator/brick/device.h"

namespace pnfsrdma::initiator {

namespace {

// From one look of the thread's to the next.
constexpr Milliseconds kLook{50};

void add_to(int epoll, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  (void)::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

void CompletionPoller::begin() {
  in_flight_.fetch_add(1);
  if (rests_.load()) wake_thread();
}

void CompletionPoller::complete() {
  end();
  // Armed before the sleeper looked at the I/O, or it has seen it complete: one of both.
  if (!armed_.load() || !armed_.exchange(false)) return;
  const int event = event_fd_.load();
  if (event < 0) return;
  const uint64_t one = 1;
  (void)!::write(event, &one, sizeof(one));
  // Behind the write, so that whoever reads it for this finds it.
  signalled_ = true;
}

void CompletionPoller::add(const std::shared_ptr<Connection>& connection) {
  if (connection->polled.load(std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(mutex_);
    if (connection->polled.exchange(true)) return;
    connections_.push_back(connection);
    if (!epoll_) return;
    watch(*connection);
  }
  // Somebody may sleep already.
  connection->queue_pair.poll(clock_.now());
}

void CompletionPoller::watch(const Connection& connection) {
  add_to(epoll_.get(), connection.queue_pair.queue_pair().fd());
}

std::shared_ptr<Connection> CompletionPoller::at(size_t index) {
  const std::lock_guard lock(mutex_);
  return index < connections_.size() ? connections_[index] : nullptr;
}

void CompletionPoller::remove(const std::shared_ptr<Connection>& connection) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(connections_.begin(), connections_.end(), connection);
  if (found == connections_.end()) return;
  if (epoll_)
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection->queue_pair.queue_pair().fd(), nullptr);
  connections_.erase(found);
}

void CompletionPoller::ring() {
  for (size_t i = 0;; ++i) {
    const std::shared_ptr<Connection> connection = at(i);
    if (!connection) return;
    connection->queue_pair.ring();
  }
}

void CompletionPoller::poll() {
  const SteadyTime now = clock_.now();
  for (size_t i = 0;; ++i) {
    const std::shared_ptr<Connection> connection = at(i);
    if (!connection) return;
    connection->queue_pair.poll(now);
    if (connection->queue_pair.ended()) remove(connection);
  }
}

void CompletionPoller::progress() {
  if (signalled_.load(std::memory_order_relaxed) && signalled_.exchange(false)) {
    uint64_t count;
    (void)!::read(event_fd_.load(), &count, sizeof(count));
  }
  poll();
}

int CompletionPoller::fd() {
  const std::lock_guard lock(mutex_);
  if (!event_) event_ = FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event_) return -1;
  if (!epoll_) {
    epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return -1;
    add_to(epoll_.get(), event_.get());
    for (const auto& connection : connections_) watch(*connection);
    event_fd_ = event_.get();
  }
  return epoll_.get();
}

void CompletionPoller::arm() {
  armed_ = true;
  progress();
}

void CompletionPoller::wake_thread() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  rests_ = false;
  if (!thread_.joinable()) {
    const SignalsBlocked blocked;  // it is a thread of the program's that comes here
    thread_ = Thread([this] { run(); });
  }
  changed_.notify_all();
}

void CompletionPoller::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    // Said before it is looked at: who begins now sees the one or is seen by the other.
    rests_ = true;
    if (!any()) {
      changed_.wait(lock, [this] { return stopping_ || !rests_; });
      continue;
    }
    rests_ = false;
    changed_.wait_until(lock, steady_now() + kLook, [this] { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    poll();
    lock.lock();
  }
}

void CompletionPoller::stop() {
  std::vector<std::shared_ptr<Connection>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(connections_);
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace pnfsrdma::initiator
