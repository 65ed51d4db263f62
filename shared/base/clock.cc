// SPDX-License-Identifier: Apache-2.0
#include "shared/base/clock.h"

#include <ctime>

#include "shared/base/sync.h"

namespace pnfsrdma {

SteadyTime SystemClock::now() const {
  return steady_now();
}

WallTime SystemClock::wall_now() const {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return {now.tv_sec, static_cast<uint32_t>(now.tv_nsec)};
}

WallTime ManualClock::wall_now() const {
  const auto nanoseconds = offset_.count();
  return {nanoseconds / 1'000'000'000, static_cast<uint32_t>(nanoseconds % 1'000'000'000)};
}

}  // namespace pnfsrdma
