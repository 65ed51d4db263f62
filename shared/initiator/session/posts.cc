// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "shared/base/sync.h"
#include "shared/initiator/session/state.h"

// Calls nobody waits for: sent at once by whoever posts them, finished (repeated, if need be) and reported on
// a thread of their own. It also frees the slots of calls that were given up.
namespace pnfsrdma::initiator {

void Session::State::post(std::unique_ptr<Parts> parts) {
  parts->began = steady_now();
  // Never on the reserved slot, nor on an only one: their replies are processed by the posts thread, which
  // must find a slot itself to repeat a call or to send one that found none.
  parts->options.urgency = Urgency::kNormal;
  bool several = false;
  {
    Lock lock(mutex_);
    several = slots_.usable() > 1;
  }
  const bool sent = several && begin(*parts);
  parts->options.urgency = Urgency::kReserved;
  Lock lock(mutex_);
  ++posts_open_;
  if (!sent) {
    finished_posts_.push_back(std::move(parts));
    posts_changed_.notify_all();
    return;
  }
  // The reply may be here already.
  parts->slot->posted = true;
  const bool answered = parts->slot->phase != Slot::Phase::kSent;
  posted_.push_back(std::move(parts));
  if (answered) posts_changed_.notify_all();
}

bool Session::State::drain_posts(SteadyTime deadline) {
  Lock lock(mutex_);
  while (posts_open_ > 0 && !stopping_) {
    if (steady_now() >= deadline) return false;
    // Their replies have to be received: by us, when nobody else is at it.
    if (!polling_ && standing_ == Standing::kLive && !posted_.empty()) {
      const bool answered = std::any_of(posted_.begin(), posted_.end(), [](const auto& parts) {
        return parts->slot->phase != Slot::Phase::kSent;
      });
      if (!answered) {
        poll_once(lock, true);
        appoint_poller();
        continue;
      }
    }
    posts_changed_.wait_until(lock, std::min(deadline, steady_now() + SessionSocket::kSlice));
  }
  return posts_open_ == 0;
}

std::unique_ptr<Session::State::Parts> Session::State::next_finished_post(Lock&) {
  const auto answered = std::find_if(posted_.begin(), posted_.end(), [](const auto& parts) {
    return parts->slot->phase != Slot::Phase::kSent;
  });
  std::unique_ptr<Parts> parts;
  if (answered != posted_.end()) {
    parts = std::move(*answered);
    posted_.erase(answered);
    parts->slot->posted = false;
  } else if (!finished_posts_.empty()) {
    parts = std::move(finished_posts_.front());
    finished_posts_.pop_front();
  } else if (aborted && !posted_.empty()) {
    parts = std::move(posted_.back());  // finish() says that the mount ends
    posted_.pop_back();
    parts->slot->posted = false;
  }
  return parts;
}

void Session::State::reap_abandoned(Lock& lock) {
  // From the beginning each time: there may be other slots behind each turn.
  while (Slot* slot = slots_.unread()) {
    Parts parts;
    parts.slot = slot;
    lock.unlock();
    // Its results interest nobody; what SEQUENCE said does.
    const auto answer = interpret(parts);
    if (answer && answer->verdict == Verdict::kSendAgain) send_again(parts);
    lock.lock();
  }
}

void Session::State::run_posts() {
  Lock lock(mutex_);
  while (!stopping_) {
    reap_abandoned(lock);
    std::unique_ptr<Parts> parts = next_finished_post(lock);
    if (!parts) {
      posts_changed_.wait_for(lock, SessionSocket::kSlice);
      continue;
    }
    lock.unlock();
    Result<CompoundReply> reply = finish(*parts);
    if (parts->completion) parts->completion(std::move(reply));
    parts.reset();
    lock.lock();
    --posts_open_;
    posts_changed_.notify_all();
  }
}

}  // namespace pnfsrdma::initiator
