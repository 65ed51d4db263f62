// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "shared/base/clock.h"

namespace pnfsrdma::rdma::verbs {

// How long a wait spins before it sleeps, learned from how long waits take: about twice the usual wait when
// that is short, nothing when completions usually come later than a sleep costs, nothing ever where there is
// but one CPU (the spinner would keep it from whoever completes). The usual wait is near the median: a mean
// would let the few long waits of a busy machine end the spinning of all others. How long a wait took that
// slept says as much of the sleep as of the completion: where waking up is slow, one bad moment would end
// the spinning for good. So one of kProbeEvery waits spins all the same, and what it finds is believed at
// once. Not thread-safe.
class SpinBudget {
 public:
  using Duration = SteadyTime::duration;

  explicit SpinBudget(unsigned processors) : allowed_(processors > 1) {}

  // Of the wait that begins now.
  Duration next() {
    if (!allowed_) return Duration(0);
    if (usual_ > kWorthSpinning) return ++unspun_ % kProbeEvery == 0 ? Duration(kMost) : Duration(0);
    return std::min<Duration>(2 * usual_ + kLeast, kMost);
  }
  // It took this long, spun and slept together. Long ones count no more than kMost, so that one pause of the
  // application is forgotten after a few short waits. `spun`: its end was found without sleep.
  void learn(Duration waited, bool spun) {
    waited = std::min<Duration>(waited, kMost);
    const Duration step = std::max<Duration>(usual_ / 4, std::chrono::microseconds(1));
    if (spun && usual_ > kWorthSpinning) {
      usual_ = waited;
    } else if (waited > usual_) {
      usual_ = std::min(usual_ + step, waited);
    } else {
      usual_ = std::max(usual_ - step, waited);
    }
  }

 private:
  static constexpr std::chrono::microseconds kWorthSpinning{400};
  static constexpr std::chrono::microseconds kLeast{5};
  static constexpr std::chrono::microseconds kMost{800};

  static constexpr unsigned kProbeEvery = 16;

  bool allowed_;
  unsigned unspun_ = 0;
  Duration usual_ = std::chrono::microseconds(20);
};

}  // namespace pnfsrdma::rdma::verbs
