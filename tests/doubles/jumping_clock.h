// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma {

// Goes on by itself, and further when it is told to. Thread-safe.
class JumpingClock final : public Clock {
 public:
  SteadyTime now() const override { return steady_now() + Milliseconds(ahead_); }
  WallTime wall_now() const override { return {}; }
  void advance(Milliseconds by) { ahead_ += by.count(); }

 private:
  std::atomic<int64_t> ahead_ = 0;
};

}  // namespace pnfsrdma
