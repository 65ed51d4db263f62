// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/base/clock.h"

namespace pnfsrdma {

// Stands still until told to move. Not thread-safe.
class ManualClock final : public Clock {
 public:
  SteadyTime now() const override { return SteadyTime(offset_); }
  WallTime wall_now() const override {
    const auto nanoseconds = offset_.count();
    return {nanoseconds / 1'000'000'000, static_cast<uint32_t>(nanoseconds % 1'000'000'000)};
  }
  void advance(Milliseconds by) { offset_ += by; }

 private:
  std::chrono::nanoseconds offset_ = std::chrono::hours(1);
};

}  // namespace pnfsrdma
