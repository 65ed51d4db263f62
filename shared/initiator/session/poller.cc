// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "shared/base/check.h"
#include "shared/base/owned.h"
#include "shared/initiator/session/socket.h"

namespace pnfsrdma::initiator {
namespace {

void drain(int fd) {
  uint64_t count = 0;
  (void)!::read(fd, &count, sizeof count);
}

}  // namespace

struct Poller::Impl {
  FileDescriptor epoll;
  FileDescriptor timer;
  FileDescriptor wake;
  std::atomic<int> socket = -1;
};

Poller::Poller() : impl_(std::make_unique<Impl>()) {}
Poller::~Poller() = default;

Result<> Poller::open() {
  impl_->epoll = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  impl_->timer = FileDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  impl_->wake = FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!impl_->epoll || !impl_->timer || !impl_->wake)
    return std::unexpected(Error::from_errno("epoll, timerfd, eventfd"));
  for (const int fd : {impl_->timer.get(), impl_->wake.get()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (::epoll_ctl(impl_->epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return std::unexpected(Error::from_errno("epoll_ctl"));
    }
  }
  return {};
}

void Poller::watch(const std::shared_ptr<SessionSocket>& socket) {
  const int fd = socket ? socket->fd() : -1;
  // The socket of before is closed or about to be: the kernel takes it out of the set then, so this may fail.
  const int before = impl_->socket.exchange(fd);
  armed_ = false;
  if (before >= 0) (void)::epoll_ctl(impl_->epoll.get(), EPOLL_CTL_DEL, before, nullptr);
  if (fd < 0) return;
  epoll_event event{.events = EPOLLONESHOT, .data = {.fd = fd}};
  CHECK(::epoll_ctl(impl_->epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0);
}

void Poller::arm() {
  const int fd = impl_->socket;
  if (fd < 0) return;
  armed_ = true;
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data = {.fd = fd}};
  (void)::epoll_ctl(impl_->epoll.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::disarm_now(Milliseconds idle_delay) {
  if (!armed_.exchange(false)) return;
  epoll_event event{.events = EPOLLONESHOT, .data = {.fd = impl_->socket}};
  (void)::epoll_ctl(impl_->epoll.get(), EPOLL_CTL_MOD, impl_->socket, &event);
  start_timer(idle_delay);
}

void Poller::start_timer(Milliseconds delay) {
  const auto nanoseconds = std::chrono::nanoseconds(delay).count();
  itimerspec spec{};
  spec.it_value = {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
  (void)::timerfd_settime(impl_->timer.get(), 0, &spec, nullptr);
}

void Poller::wake() {
  const uint64_t one = 1;
  (void)!::write(impl_->wake.get(), &one, sizeof one);
}

Poller::Events Poller::wait(Milliseconds longest) {
  std::array<epoll_event, 3> events;
  const int count =
      ::epoll_wait(impl_->epoll.get(), events.data(), events.size(), static_cast<int>(longest.count()));
  Events seen;
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<size_t>(i)].data.fd;
    if (fd == impl_->timer.get()) {
      drain(fd);
      seen.timer = true;
    } else if (fd == impl_->wake.get()) {
      drain(fd);
    } else if (fd == impl_->socket) {
      armed_ = false;  // one shot
      seen.socket = true;
    }
  }
  return seen;
}

}  // namespace pnfsrdma::initiator
