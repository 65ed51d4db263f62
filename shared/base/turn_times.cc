// SPDX-License-Identifier: Apache-2.0
#include "shared/base/turn_times.h"

#include <algorithm>

#include "shared/base/log.h"

namespace pnfsrdma {

void TurnTimes::end_turn(SteadyTime begun, SteadyTime ended) {
  const Duration took = ended - begun;
  times_.add(took);
  if (took > kSlow) note_slow(ended, took);
  steps_ = 0;
  longest_step_ = {};
}

void TurnTimes::note_slow(SteadyTime ended, Duration took) {
  ++slow_;
  if (ended - window_begun_ >= kWindow) {
    window_before_ = ended - window_begun_ < 2 * kWindow ? window_ : Recent{};
    window_ = {};
    window_begun_ = ended;
  }
  window_.longest = std::max(window_.longest, took);
  if (took > kStalled) ++window_.stalled;
  log(ended, took);
}

void TurnTimes::log(SteadyTime now, Duration took) {
  if (logged_ != SteadyTime() && now - logged_ < kLogEvery) {
    ++not_logged_;
    return;
  }
  const auto milliseconds = [](Duration time) {
    return std::chrono::duration_cast<Milliseconds>(time).count();
  };
  log_warning("loop",
              "slow-turn milliseconds={} did={} client={:#x} step_milliseconds={} steps={} not_logged={}",
              milliseconds(took), longest_step_.what.empty() ? "unnamed" : longest_step_.what,
              longest_step_.client, milliseconds(longest_step_.took), steps_, not_logged_);
  logged_ = now;
  not_logged_ = 0;
}

TurnTimes::Recent TurnTimes::recent(SteadyTime now) const {
  const auto age = now - window_begun_;
  if (age >= 2 * kWindow) return {};
  Recent recent = window_;
  if (age < kWindow) {
    recent.longest = std::max(recent.longest, window_before_.longest);
    recent.stalled += window_before_.stalled;
  }
  return recent;
}

}  // namespace pnfsrdma
