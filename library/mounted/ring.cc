// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/ring.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

// The program's side says that it sleeps whenever nobody is inside of progress(): its event wakes whoever polls it
// then, inside of the library or outside.
namespace pnfsrdma::library::mounted {
namespace {

Result<> watch(int epoll, int descriptor, uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = descriptor}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0)
    return std::unexpected(Error::from_errno("epoll_ctl"));
  return {};
}

}  // namespace

Result<std::unique_ptr<Ring>> Ring::make(Door& door) {
  FileDescriptor watched(::epoll_create1(EPOLL_CLOEXEC));
  if (!watched) return std::unexpected(Error::from_errno("epoll_create1"));
  TRY(watch(watched.get(), door.event(), EPOLLIN));
  TRY(watch(watched.get(), door.socket(), EPOLLRDHUP));
  return std::unique_ptr<Ring>(new Ring(door, std::move(watched)));
}

Ring::Ring(Door& door, FileDescriptor watched)
    : door_(door), watched_(std::move(watched)), rings_(door.rings(), door.depth()) {
  (void)rings_.may_sleep();
}

uint32_t Ring::add(Waiter& waiter) {
  const std::lock_guard lock(reaping_);
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(waiters_.size()));
    waiters_.push_back(nullptr);
  }
  const uint32_t number = free_.back();
  free_.pop_back();
  waiters_[number] = &waiter;
  return number;
}

void Ring::remove(uint32_t number) {
  const std::lock_guard lock(reaping_);
  waiters_[number] = nullptr;
  free_.push_back(number);
}

bool Ring::submit(Waiter& waiter, ring::Submission submission, Doorbell doorbell) {
  const std::lock_guard lock(submitting_);
  if (gone_) return false;
  submission.user_data = waiter.number_;
  waiter.waits_ = true;  // before it may complete
  if (!rings_.submit(submission)) {
    waiter.waits_ = false;
    return false;
  }
  unpublished_ = true;
  if (doorbell == Doorbell::kNow) publish();
  return true;
}

void Ring::ring() {
  const std::lock_guard lock(submitting_);
  if (unpublished_) publish();
}

// Under submitting_.
void Ring::publish() {
  unpublished_ = false;
  if (!rings_.publish()) return;
  const uint64_t one = 1;
  (void)!::write(door_.doorbell(), &one, sizeof one);
}

void Ring::progress() {
  const std::lock_guard lock(reaping_);
  bool any = false;
  do {
    // Before the ring is looked at: what comes behind that rings again.
    if (rings_.awake()) ++rings_owed_;
    uint64_t rung = 0;
    if (rings_owed_ > 0 && ::read(door_.event(), &rung, sizeof rung) > 0)
      rings_owed_ -= std::min(rings_owed_, rung);
    any |= take();
  } while (!rings_.may_sleep());
  // Nothing twice: perhaps it is the socket that wakes us.
  if (std::exchange(idle_, !any) && !any && door_.is_closed()) give_up();
}

// Under reaping_.
bool Ring::take() {
  bool any = false;
  while (const auto completion = rings_.reap()) {
    any = true;
    if (completion->user_data >= waiters_.size()) continue;
    Waiter* const waiter = waiters_[completion->user_data];
    if (waiter != nullptr && waiter->waits_.exchange(false)) waiter->completed(completion->result);
  }
  return any;
}

// Under reaping_. What was not completed never will be.
void Ring::give_up() {
  const std::lock_guard lock(submitting_);
  gone_ = true;
  (void)::epoll_ctl(watched_.get(), EPOLL_CTL_DEL, door_.socket(), nullptr);
  for (Waiter* const waiter : waiters_) {
    if (waiter != nullptr && waiter->waits_.exchange(false)) waiter->completed(-EIO);
  }
}

}  // namespace pnfsrdma::library::mounted
