// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "shared/base/clock.h"
#include "shared/base/latency_histogram.h"

namespace pnfsrdma {

// How long the turns of an event loop take: from the end of one wait to the beginning of the next, the time
// in which nobody else is served. A turn of more than kSlow is logged (`slow-turn`) with the longest of its
// steps that has a name, at most once in kLogEvery. Owned by the EventLoop; its thread only, but for times().
class TurnTimes {
 public:
  using Duration = std::chrono::nanoseconds;

  static constexpr Milliseconds kSlow{100};
  static constexpr Milliseconds kStalled{1000};
  static constexpr Milliseconds kLogEvery{5000};
  static constexpr Milliseconds kWindow{60'000};

  // Part of this turn: `what` is a literal ("OPEN", "lease-expiry"), `client` its client or 0.
  void step(std::string_view what, uint64_t client, Duration took) {
    ++steps_;
    if (took <= longest_step_.took) return;
    longest_step_ = {what, client, took};
  }
  // One clock read per turn is what this costs: the loop knows `ended` for its next wait anyway.
  void end_turn(SteadyTime begun, SteadyTime ended);

  LatencyHistogram::Snapshot times() const { return times_.snapshot(); }
  // Turns of more than kSlow, since the start.
  uint64_t slow() const { return slow_; }
  // Of the window that runs and the one before it: one to two minutes.
  struct Recent {
    Duration longest{0};
    uint64_t stalled = 0;  // turns of more than kStalled
  };
  Recent recent(SteadyTime now) const;

 private:
  struct Step {
    std::string_view what;
    uint64_t client = 0;
    Duration took{0};
  };
  void note_slow(SteadyTime ended, Duration took);
  void log(SteadyTime now, Duration took);

  LatencyHistogram times_;
  uint64_t slow_ = 0;
  uint64_t steps_ = 0;  // of this turn
  Step longest_step_;
  SteadyTime window_begun_;
  Recent window_;
  Recent window_before_;
  SteadyTime logged_;
  uint64_t not_logged_ = 0;
};

}  // namespace pnfsrdma
