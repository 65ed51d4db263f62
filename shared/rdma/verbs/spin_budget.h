// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "shared/base/clock.h"

namespace pnfsrdma::rdma::verbs {

// How long a wait spins before it sleeps: about twice as long as waits usually take, where spinning makes
// them shorter. What a sleep adds differs by orders of magnitude between machines, so both are learned: now
// and then a wait that would spin sleeps at once, and one that would not spins. Spinning pays when it saves
// an eighth of the wait. A spin in vain makes the next ones shorter, so that a peer that is silent costs next
// to nothing. Never where there is but one CPU: the spinner would keep it from whoever completes.
//
// Steps and not means: these would let the few long waits of a busy machine end the spinning of all others.
// Not thread-safe.
class SpinBudget {
 public:
  using Duration = SteadyTime::duration;

  explicit SpinBudget(unsigned processors) : allowed_(processors > 1) {}

  // Of the wait that begins now.
  Duration next() {
    if (!allowed_) return Duration(0);
    ++waits_;
    if ((!pays() || in_vain_) && waits_ % kSpinEvery == 0) {
      budget_ = kMost;
    } else if (!pays() || waits_ % kSleepEvery == 0) {
      budget_ = Duration(0);
    } else {
      budget_ = std::min<Duration>(2 * spun_ + kLeast, kMost);
    }
    return budget_;
  }
  // It took this long, spun and slept together. `spun`: its end was found without sleep.
  void learn(Duration waited, bool spun) {
    waited = std::min<Duration>(waited, kMost);
    if (spun) {
      // What a trial finds is believed at once: what was usual is so no more.
      spun_ = budget_ == kMost ? waited : nearer(spun_, waited);
      in_vain_ = false;
    } else if (budget_ == Duration(0)) {
      slept_ = nearer(slept_, waited);
    } else {
      spun_ -= spun_ / 4;
      in_vain_ = true;
    }
  }

 private:
  static constexpr std::chrono::microseconds kLeast{5};
  static constexpr std::chrono::microseconds kMost{2000};
  static constexpr unsigned kSpinEvery = 16;
  static constexpr unsigned kSleepEvery = 100;

  bool pays() const { return slept_ - slept_ / 8 > spun_; }
  // A step from `usual` towards `waited`, a longer one upwards: of two kinds of wait that take turns, the
  // longer one is covered.
  static Duration nearer(Duration usual, Duration waited) {
    constexpr Duration kStep = std::chrono::microseconds(1);
    return waited > usual ? std::min(usual + usual / 2 + kStep, waited)
                          : std::max(usual - usual / 8 - kStep, waited);
  }

  bool allowed_;
  unsigned waits_ = 0;
  Duration budget_{0};                              // of the wait that is under way
  bool in_vain_ = false;                            // the last spin was
  Duration spun_ = std::chrono::microseconds(20);   // how long a wait usually takes that spins
  Duration slept_ = std::chrono::microseconds(40);  // and one that sleeps at once
};

}  // namespace pnfsrdma::rdma::verbs
