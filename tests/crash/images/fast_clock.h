// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "shared/base/clock.h"

namespace pnfsrdma::crash {

// The machine's clock, running ahead when told to: quarantines and pauses pass at once. Thread-safe.
class FastClock final : public Clock {
 public:
  SteadyTime now() const override { return system_.now() + Milliseconds(ahead_ms_); }
  WallTime wall_now() const override { return system_.wall_now(); }
  void advance(Milliseconds by) { ahead_ms_ += by.count(); }

 private:
  SystemClock system_;
  std::atomic<int64_t> ahead_ms_ = 0;
};

}  // namespace pnfsrdma::crash
