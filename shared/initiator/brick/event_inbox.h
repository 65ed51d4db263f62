// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "shared/base/sync.h"
#include "shared/initiator/brick/shared_queue_pair.h"

namespace pnfsrdma::initiator {

// Who hears what a brick tells of one watch. Called by whichever thread polls, with no lock held; it must not wait.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // A signal or a gap.
  virtual void told(const brick::Event& event) = 0;
  // Nothing more comes: the grant or the connection is gone. Perhaps before the answer to the WatchCall is there.
  virtual void ended() = 0;
};

// What the brick tells on one connection, by the numbers of the watches. A call for events is with the brick as long as
// anything is watched. Thread-safe.
class EventInbox final : private BatchOwner {
 public:
  explicit EventInbox(SharedQueuePair& queue_pair) : queue_pair_(queue_pair) {}
  EventInbox(const EventInbox&) = delete;
  EventInbox& operator=(const EventInbox&) = delete;

  // Before the brick is asked to watch: what it tells may be faster than its answer.
  void add(uint64_t watch, std::shared_ptr<EventSink> sink);
  void remove(uint64_t watch);
  // Behind the answer. False: the connection has ended.
  bool ask();
  // Where something is watched and nothing was received for so long the brick is asked whether it is still there; no
  // answer in `patience` ends the connection. Does not wait. For one thread, which asks again and again.
  void feel_pulse(SteadyTime now, Milliseconds silence, Milliseconds patience);

 private:
  struct Entry {
    std::shared_ptr<EventSink> sink;
    uint64_t sequence = 0;  // of the last event
  };

  void batch_done(WorkBatch& batch) override;
  void take(const brick::Event& event);
  void end();

  SharedQueuePair& queue_pair_;
  // Whoever has set asking_ uses them, until the batch is done.
  WorkItem item_;
  WorkBatch batch_{{&item_, 1}};
  // The same with pulsing_.
  WorkItem pulse_item_;
  WorkBatch pulse_{{&pulse_item_, 1}};
  // feel_pulse()'s: what it saw last, and when that was new.
  uint64_t answers_ = 0;
  SteadyTime heard_{};

  Mutex mutex_;  // everything below
  std::map<uint64_t, Entry> watches_;
  bool asking_ = false;
  bool pulsing_ = false;
};

}  // namespace pnfsrdma::initiator
