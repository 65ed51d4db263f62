// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "shared/base/bytes.h"
#include "shared/base/guarded.h"
#include "shared/base/owned.h"
#include "shared/brick/session_messages.h"

namespace pnfsrdma::brick {

class EventInbox;

// A range of the pool's memory that a client watches under a grant.
struct Watch {
  EventInbox* inbox = nullptr;
  uint64_t number = 0;  // the client's
  uint64_t grant = 0;
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t told = 0;        // events put into the inbox: the last one's number
  size_t unsent = 0;        // of those, still there
  bool gap_unsent = false;  // one of them is a gap: what comes until it is sent is a part of that
};

// What one connection's client watches and has not been told yet. Filled by Watchers, under its mutex, in whatever
// thread; emptied by the connection's, which alone opens it, sleeps on fd() and closes it.
class EventInbox {
 public:
  EventInbox() = default;
  EventInbox(const EventInbox&) = delete;
  EventInbox& operator=(const EventInbox&) = delete;

  // Before anything is watched. False: there is no descriptor left.
  bool open();
  bool is_open() const { return wake_.get() >= 0; }
  // Readable behind an event that comes into an empty inbox, until calm().
  int fd() const { return wake_.get(); }
  void calm();
  bool any() const { return any_.load(std::memory_order_acquire); }

 private:
  friend class Watchers;

  FileDescriptor wake_;
  std::atomic<bool> any_ = false;
  // Under the mutex of Watchers.
  std::map<uint64_t, Watch> watches_;           // by their numbers
  std::multimap<uint64_t, uint64_t> by_grant_;  // their numbers
  std::deque<Event> unsent_;
};

// Who watches which memory of the brick, for all connections. A signal costs what is watched there, not what is
// watched elsewhere; nobody waits for a client that takes no events, which gets a gap. Thread-safe; the mutex is
// held for no system call but an eventfd's write. Owned by the Brick.
class Watchers {
 public:
  // `memory`: of the grant, which may be withdrawn meanwhile: the caller looks again behind this.
  WatchStatus add(EventInbox& inbox, const WatchCall& call, ByteSpan memory);
  void remove(EventInbox& inbox, uint64_t watch);
  // As if it had not been added: nothing that it was told is left, either.
  void undo(EventInbox& inbox, uint64_t watch);
  // The client is told that they have ended.
  void grant_ended(EventInbox& inbox, uint64_t grant);
  void connection_ended(EventInbox& inbox);

  void tell(ByteSpan memory, uint64_t value);
  // At most kEventsPerMessage, in the order they came.
  void take(EventInbox& inbox, EventsReply& reply);

 private:
  // By the binary logarithm of their length, each by where it begins: so those that end behind a place begin not far
  // before it.
  static constexpr size_t kClasses = 64;
  using Class = std::set<std::pair<uintptr_t, Watch*>>;
  struct Table {
    std::array<Class, kClasses> classes;
    size_t watches = 0;
  };

  static size_t class_of(const Watch& watch);
  static void remove(Table& table, Watch& watch);
  static void put(Watch& watch, Event event);

  Guarded<Table> table_;
};

}  // namespace pnfsrdma::brick
