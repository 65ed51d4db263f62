// SPDX-License-Identifier: Apache-2.0
#include "shared/base/clock.h"

#include <algorithm>
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

#ifndef PNFSRDMA_SIM
std::chrono::nanoseconds slept_so_far() {
  const auto read = [](clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  // In this order: it is never more than it has been, if something comes between the two.
  const auto all = read(CLOCK_BOOTTIME);
  return std::max(all - read(CLOCK_MONOTONIC), std::chrono::nanoseconds(0));
}
#endif

}  // namespace pnfsrdma
