// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "shared/base/sync.h"
#include "shared/initiator/session/state.h"

// Calls nobody waits for: sent at once by whoever posts them, finished (repeated, if need be) and reported on
// a thread of their own. It also frees the slots of calls that were given up.
namespace pnfsrdma::initiator {

void Session::State::post(std::unique_ptr<Call> call) {
  call->began = steady_now();
  // Never on the reserved slot, nor on an only one: their replies are processed by the posts thread, which
  // must find a slot itself to repeat a call or to send one that found none.
  call->options.urgency = Urgency::kNormal;
  bool several = false;
  {
    Lock lock(mutex_);
    several = slots_.usable() > 1;
  }
  const bool sent = several && begin(*call);
  call->options.urgency = Urgency::kReserved;
  Lock lock(mutex_);
  ++posts_open_;
  if (!sent) {
    finished_posts_.push_back(std::move(call));
    posts_changed_.notify_all();
    return;
  }
  // The reply may be here already.
  call->slot->posted = true;
  const bool answered = call->slot->phase != Slot::Phase::kSent;
  posted_.push_back(std::move(call));
  if (answered) posts_changed_.notify_all();
}

bool Session::State::drain_posts(SteadyTime deadline) {
  Lock lock(mutex_);
  while (posts_open_ > 0 && !stopping_) {
    if (steady_now() >= deadline) return false;
    // Their replies have to be received: by us, when nobody else is at it.
    if (!polling_ && standing_ == Standing::kLive && !posted_.empty()) {
      const bool answered = std::any_of(posted_.begin(), posted_.end(), [](const auto& call) {
        return call->slot->phase != Slot::Phase::kSent;
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

std::unique_ptr<Session::State::Call> Session::State::next_finished_post(Lock&) {
  const auto answered = std::find_if(posted_.begin(), posted_.end(), [](const auto& call) {
    return call->slot->phase != Slot::Phase::kSent;
  });
  std::unique_ptr<Call> call;
  if (answered != posted_.end()) {
    call = std::move(*answered);
    posted_.erase(answered);
    call->slot->posted = false;
  } else if (!finished_posts_.empty()) {
    call = std::move(finished_posts_.front());
    finished_posts_.pop_front();
  } else if (aborted && !posted_.empty()) {
    call = std::move(posted_.back());  // finish() says that the mount ends
    posted_.pop_back();
    call->slot->posted = false;
  }
  return call;
}

void Session::State::reap_abandoned(Lock& lock) {
  // From the beginning each time: there may be other slots behind each turn.
  while (Slot* slot = slots_.unread()) {
    Call call;
    call.slot = slot;
    lock.unlock();
    // Its results interest nobody; what SEQUENCE said does.
    const auto answer = interpret(call);
    if (answer && answer->verdict == Verdict::kSendAgain) send_again(call);
    lock.lock();
  }
}

void Session::State::run_posts() {
  Lock lock(mutex_);
  while (!stopping_) {
    reap_abandoned(lock);
    std::unique_ptr<Call> call = next_finished_post(lock);
    if (!call) {
      posts_changed_.wait_for(lock, SessionSocket::kSlice);
      continue;
    }
    lock.unlock();
    Result<CompoundReply> reply = finish(*call);
    if (call->completion) call->completion(std::move(reply));
    call.reset();
    lock.lock();
    --posts_open_;
    posts_changed_.notify_all();
  }
}

}  // namespace pnfsrdma::initiator
