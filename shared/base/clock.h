// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace pnfsrdma {

using Milliseconds = std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

// Seconds and nanoseconds since 1970, as files carry them.
struct WallTime {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
  auto operator<=>(const WallTime&) const = default;
};

// Where a component gets its time from, so that a test or the simulator can hold it. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual SteadyTime now() const = 0;
  virtual WallTime wall_now() const = 0;
};

// The machine's clocks.
class SystemClock final : public Clock {
 public:
  SteadyTime now() const override;
  WallTime wall_now() const override;
};

}  // namespace pnfsrdma
