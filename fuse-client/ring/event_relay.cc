// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/ring/event_relay.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace pnfsrdma::fuse_client {
namespace {

// Passed on before the others have their turn.
constexpr int kEventsInTurn = 64;
// Where the host has no memory for an event just now. So long the others wait, too.
constexpr Milliseconds kMemoryPause{1};

// What an event is of: a watch (even) or its channel (odd), by its number; 0: to be stopped.
constexpr uint64_t of_watch(uint64_t number) {
  return 2 * number;
}
constexpr uint64_t of_channel(uint64_t number) {
  return 2 * number + 1;
}

ring::Event event_of(const initiator::WatchEvent& event) {
  using Kind = initiator::WatchEvent::Kind;
  const auto kind = event.kind == Kind::kSignal    ? ring::EventKind::kSignal
                    : event.kind == Kind::kGapSlow ? ring::EventKind::kGapSlow
                                                   : ring::EventKind::kGapLost;
  return {.kind = static_cast<uint32_t>(kind),
          .offset = event.offset,
          .length = event.length,
          .value = event.value};
}

bool control(int epoll, int operation, int descriptor, uint64_t what, uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = what}};
  return ::epoll_ctl(epoll, operation, descriptor, &event) == 0;
}

}  // namespace

bool EventRelay::open() {
  if (thread_.joinable()) return true;
  epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll_ || !wake_ || !control(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), 0, EPOLLIN)) return false;
  thread_ = Thread([this] { run(); });
  return true;
}

Result<> EventRelay::check_room(uid_t user) {
  const std::lock_guard lock(mutex_);
  const auto own = std::ranges::count_if(all_, [&](const auto& each) { return each.second.user == user; });
  if (all_.size() < kWatchesMax && (user == 0 || static_cast<size_t>(own) < kWatchesOfAUserMax)) return {};
  return fail(ENOSPC, "the mount's programs watch too much");
}

Result<> EventRelay::begin(const OpenFile& file, uid_t user, std::shared_ptr<initiator::Watch> watch,
                           FileDescriptor channel) {
  TRY(check_room(user));
  const std::lock_guard lock(mutex_);
  if (stopping_) return fail(ESHUTDOWN, "the mount ends");
  if (!open()) return fail(EMFILE, "there are no descriptors to sleep on");
  const uint64_t number = next_++;
  if (!control(epoll_.get(), EPOLL_CTL_ADD, watch->fd(), of_watch(number), EPOLLIN) ||
      !control(epoll_.get(), EPOLL_CTL_ADD, channel.get(), of_channel(number), 0))
    return std::unexpected(Error::from_errno("epoll_ctl"));
  all_.emplace(number, Relayed{&file, user, std::move(watch), std::move(channel), {}});
  return {};
}

void EventRelay::forget(All::iterator relayed, All& gone) {
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, relayed->second.watch->fd(), nullptr);
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, relayed->second.channel.get(), nullptr);
  gone.insert(all_.extract(relayed));
}

void EventRelay::end(const OpenFile& file) {
  All gone;  // without the mutex: watches end with it
  const std::lock_guard lock(mutex_);
  for (auto each = all_.begin(); each != all_.end();) {
    const auto now = each++;
    if (now->second.file == &file) forget(now, gone);
  }
}

void EventRelay::stop() {
  All gone;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    const uint64_t one = 1;
    if (wake_) (void)!::write(wake_.get(), &one, sizeof one);
  }
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  gone.swap(all_);
}

// While the socket is full only that is waited for.
void EventRelay::listen(uint64_t number, const Relayed& relayed) {
  const uint32_t of_events = relayed.held ? 0u : uint32_t{EPOLLIN};
  const uint32_t of_room = relayed.held ? uint32_t{EPOLLOUT} : 0u;
  (void)control(epoll_.get(), EPOLL_CTL_MOD, relayed.watch->fd(), of_watch(number), of_events);
  (void)control(epoll_.get(), EPOLL_CTL_MOD, relayed.channel.get(), of_channel(number), of_room);
}

// What counts as unsent in a local socket is what its other end has not received.
bool EventRelay::gap_waits(const Relayed& relayed) {
  int unreceived = 0;
  return relayed.last_was_gap && ::ioctl(relayed.channel.get(), SIOCOUTQ, &unreceived) == 0 && unreceived > 0;
}

bool EventRelay::pass_on(uint64_t number, Relayed& relayed) {
  const bool was_full = relayed.held.has_value();
  for (int i = 0; i < kEventsInTurn; ++i) {
    if (!relayed.held) {
      const auto event = relayed.watch->next();
      if (!event) break;
      if (event->kind != initiator::WatchEvent::Kind::kSignal && gap_waits(relayed)) continue;
      relayed.held = event_of(*event);
    }
    if (::send(relayed.channel.get(), &*relayed.held, sizeof *relayed.held, MSG_DONTWAIT | MSG_NOSIGNAL) <
        0) {
      const bool short_of_memory = errno == ENOBUFS || errno == ENOMEM;
      if (errno != EAGAIN && !short_of_memory) return false;
      // Of the host's memory the socket says nothing: it has room, and is asked again and again.
      if (short_of_memory) sleep_for(kMemoryPause);
      break;
    }
    relayed.last_was_gap = relayed.held->kind != static_cast<uint32_t>(ring::EventKind::kSignal);
    relayed.held.reset();
  }
  if (was_full != relayed.held.has_value()) listen(number, relayed);
  return true;
}

void EventRelay::run() {
  std::array<epoll_event, 16> ready;
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), -1);
    All gone;
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = ready[static_cast<size_t>(i)];
      const auto found = all_.find(event.data.u64 / 2);
      if (found == all_.end()) continue;
      const bool hung_up =
          event.data.u64 == of_channel(found->first) && (event.events & (EPOLLHUP | EPOLLERR)) != 0;
      if (hung_up || !pass_on(found->first, found->second)) forget(found, gone);
    }
  }
}

}  // namespace pnfsrdma::fuse_client
