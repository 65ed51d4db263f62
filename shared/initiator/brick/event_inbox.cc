// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/event_inbox.h"

#include <utility>

namespace pnfsrdma::initiator {

void EventInbox::add(uint64_t watch, std::shared_ptr<EventSink> sink) {
  const std::lock_guard lock(mutex_);
  watches_[watch] = {std::move(sink)};
}

void EventInbox::remove(uint64_t watch) {
  const std::lock_guard lock(mutex_);
  watches_.erase(watch);
}

bool EventInbox::ask() {
  {
    const std::lock_guard lock(mutex_);
    if (asking_ || watches_.empty()) return true;
    asking_ = true;
  }
  if (queue_pair_.park(batch_, *this, {})) return true;
  const std::lock_guard lock(mutex_);
  asking_ = false;
  return false;
}

void EventInbox::feel_pulse(SteadyTime now, Milliseconds silence, Milliseconds patience) {
  const uint64_t answers = queue_pair_.progress().answers;
  if (std::exchange(answers_, answers) != answers) heard_ = now;
  if (now - heard_ < silence) return;
  {
    const std::lock_guard lock(mutex_);
    if (watches_.empty() || std::exchange(pulsing_, true)) return;
  }
  if (queue_pair_.try_reserve(pulse_, *this, brick::PersistCall{}))
    return queue_pair_.start_reserved(pulse_, now + patience);
  // There is no room, so something is in flight that has a deadline of its own; or the connection is dead.
  const std::lock_guard lock(mutex_);
  pulsing_ = false;
}

void EventInbox::batch_done(WorkBatch& batch) {
  if (&batch == &pulse_) {
    const std::lock_guard lock(mutex_);
    pulsing_ = false;
    return;
  }
  const auto reply = batch.answer<brick::EventsReply>();
  if (!reply) return end();
  for (const brick::Event& event : reply->events) take(event);
  {
    const std::lock_guard lock(mutex_);
    asking_ = false;
  }
  if (!ask()) end();
}

void EventInbox::take(const brick::Event& event) {
  std::shared_ptr<EventSink> sink;
  bool left_out = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = watches_.find(event.watch);
    if (found == watches_.end()) return;  // it was given up
    sink = found->second.sink;
    left_out = event.sequence != found->second.sequence + 1;
    found->second.sequence = event.sequence;
    if (event.kind == brick::EventKind::kEnd) watches_.erase(found);
  }
  if (event.kind == brick::EventKind::kEnd) return sink->ended();
  if (left_out) sink->told({.watch = event.watch, .kind = brick::EventKind::kGap});
  sink->told(event);
}

void EventInbox::end() {
  std::map<uint64_t, Entry> ended;
  {
    const std::lock_guard lock(mutex_);
    asking_ = false;
    ended.swap(watches_);
  }
  for (const auto& [watch, entry] : ended) entry.sink->ended();
}

}  // namespace pnfsrdma::initiator
