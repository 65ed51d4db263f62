// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/guarded.h"
#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

// One line of the log.
struct Event {
  uint64_t sequence = 0;  // from 1
  WallTime time;
  LogLevel level = LogLevel::kInfo;
  std::string component;
  std::string name;  // the first word: stable
  std::vector<std::pair<std::string, std::string>> fields;
  std::string text;  // behind the component
};

// What of the events somebody wants.
struct EventFilter {
  LogLevel least = LogLevel::kDebug;
  std::string component;  // empty: any
  std::string name;
  bool wants(const Event& event) const;
};

// The newest events of this process, as the log had them. Thread-safe; add() does not log and waits for
// nobody.
class EventLog {
 public:
  explicit EventLog(const Clock& clock, size_t kept = 8192) : clock_(clock), kept_(kept) {}

  void add(LogLevel level, std::string_view component, std::string_view text);

  struct Range {
    uint64_t oldest = 0;  // still kept; 0: none
    uint64_t newest = 0;
  };
  Range range();
  // Those behind `after` that are wanted, oldest first, at most `limit`; `seen`: up to where it looked.
  std::vector<Event> behind(uint64_t after, const EventFilter& filter, size_t limit, uint64_t& seen);
  // The newest `limit` that are wanted, oldest first.
  std::vector<Event> newest(const EventFilter& filter, size_t limit);
  // Waits until there is one behind `after`, `longest` has passed, or stop(). False unless there is one.
  bool wait_behind(uint64_t after, Milliseconds longest);
  // Ends all waits, for good.
  void stop();
  bool stopped() { return state_.lock()->stopped; }

 private:
  struct State {
    std::deque<Event> events;
    uint64_t next = 1;
    bool stopped = false;
  };

  const Clock& clock_;
  const size_t kept_;
  Guarded<State> state_;
  Condition added_;
};

// "name key=value key=\"with spaces\" …" split up; anything that is not a pair is left out.
std::vector<std::pair<std::string, std::string>> parse_fields(std::string_view text);
std::string_view name_of(LogLevel level);

}  // namespace pnfsrdma::console
