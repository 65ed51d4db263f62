// SPDX-License-Identifier: Apache-2.0
#include "library/watch.h"

#include <poll.h>

#include <algorithm>

#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::library {

Result<bool> Watch::next(pnfsrdma_event& event, int timeout_ms) {
  const SteadyTime deadline = steady_now() + Milliseconds(std::max(timeout_ms, 0));
  for (;;) {
    TRY_ASSIGN(const auto taken, take());
    if (taken) {
      event = *taken;
      return true;
    }
    const auto left = std::chrono::ceil<Milliseconds>(deadline - steady_now());
    if (timeout_ms >= 0 && left <= Milliseconds(0)) return false;
    pollfd ready{fd(), POLLIN, 0};
    if (::poll(&ready, 1, timeout_ms < 0 ? -1 : static_cast<int>(left.count())) < 0)
      return std::unexpected(Error::from_errno("waiting for an event"));
  }
}

}  // namespace pnfsrdma::library
