// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/blocked_locks.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>

#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {
namespace {

constexpr Milliseconds kFirstPause{2};
constexpr Milliseconds kLongestPause{250};

SteadyTime now() {
  return steady_now();
}

}  // namespace

void BlockedLocks::start(TryAgain try_again) {
  try_again_ = std::move(try_again);
  stopping_ = false;
  thread_ = Thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "blocked-locks");
}

void BlockedLocks::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (trying_ != nullptr) trying_->interrupted = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const Place& place : places_) {
    let_go(*place.waiting);
    fuse_reply_err(place.waiting->request, EINTR);
  }
  places_.clear();
}

// libfuse calls the function in any worker, or at once, and holds a lock of the request meanwhile. So it is
// set before the request can be found here, and taken away before it is answered.
void BlockedLocks::add(std::unique_ptr<Waiting> waiting) {
  waiting->owner = this;
  waiting->wish.interrupted = &waiting->interrupted;
  const auto heard = [](fuse_req_t, void* data) {
    auto* const interrupted = static_cast<Waiting*>(data);
    interrupted->interrupted = true;
    interrupted->owner->wake();
  };
  fuse_req_interrupt_func(waiting->request, heard, waiting.get());
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      places_.push_back({std::move(waiting), now() + kFirstPause, kFirstPause});
      changed_.notify_all();
      return;
    }
  }
  let_go(*waiting);
  fuse_reply_err(waiting->request, EINTR);
}

void BlockedLocks::wake() {
  // Under the mutex: not between the thread's look at the flags and its going to sleep.
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void BlockedLocks::look(const Inode& inode) {
  const std::lock_guard lock(mutex_);
  for (Place& place : places_) {
    if (place.waiting->wish.inode.get() != &inode) continue;
    place.next_try = now();
    place.pause = kFirstPause;
  }
  if (trying_ != nullptr && trying_->wish.inode.get() == &inode) look_again_ = true;
  changed_.notify_all();
}

// The one that is due first; if none is, when one will be.
BlockedLocks::Places::iterator BlockedLocks::next_due(SteadyTime time, SteadyTime& wake_at) {
  auto first = places_.end();
  for (auto at = places_.begin(); at != places_.end(); ++at) {
    if (at->waiting->interrupted) return at;
    if (first == places_.end() || at->next_try < first->next_try) first = at;
  }
  if (first == places_.end() || first->next_try <= time) return first;
  wake_at = first->next_try;
  return places_.end();
}

void BlockedLocks::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    SteadyTime wake_at = now() + std::chrono::hours(1);
    const auto due = next_due(now(), wake_at);
    if (due == places_.end()) {
      changed_.wait_until(lock, wake_at);
      continue;
    }
    Places one;
    one.splice(one.begin(), places_, due);
    Place& place = one.front();
    trying_ = place.waiting.get();
    look_again_ = false;
    lock.unlock();
    const bool answered = try_again_(*place.waiting);
    lock.lock();
    trying_ = nullptr;
    if (answered) continue;
    place.next_try = look_again_ ? now() : now() + place.pause;
    place.pause = std::min(place.pause * 2, kLongestPause);
    places_.splice(places_.end(), one);
  }
}

}  // namespace pnfsrdma::fuse_client
