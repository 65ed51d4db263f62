// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "shared/base/clock.h"

namespace pnfsrdma::rdma::verbs {

// How long a wait spins before it sleeps, learned from how long waits take: about twice the usual wait when
// that is short, nothing when completions usually come later than a sleep costs, nothing ever where there is
// but one CPU (the spinner would keep it from whoever completes). Not thread-safe.
class SpinBudget {
 public:
  using Duration = SteadyTime::duration;

  explicit SpinBudget(unsigned processors) : allowed_(processors > 1) {}

  Duration now() const {
    if (!allowed_ || usual_ > kWorthSpinning) return Duration(0);
    return std::min<Duration>(2 * usual_ + kLeast, kMost);
  }
  // A wait took this long, spun and slept together. Long ones count no more than kMost, so that one pause of
  // the application is forgotten after a few short waits.
  void learn(Duration waited) { usual_ += (std::min<Duration>(waited, kMost) - usual_) / 8; }

 private:
  static constexpr std::chrono::microseconds kWorthSpinning{400};
  static constexpr std::chrono::microseconds kLeast{5};
  static constexpr std::chrono::microseconds kMost{800};

  bool allowed_;
  Duration usual_ = std::chrono::microseconds(20);
};

}  // namespace pnfsrdma::rdma::verbs
