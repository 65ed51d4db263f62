// SPDX-License-Identifier: Apache-2.0
#include "library/lock_wait.h"

#include <time.h>

#include <algorithm>
#include <cerrno>

namespace pnfsrdma::library {
namespace {

// Servers keep the place of who comes again soon.
constexpr Milliseconds kLongestPause{250};

}  // namespace

LockWait::LockWait(int timeout_ms)
    : deadline_(timeout_ms < 0 ? SteadyTime::max() : steady_now() + Milliseconds(timeout_ms)) {}

Result<> LockWait::pause() {
  const SteadyTime now = steady_now();
  if (now >= deadline_) return fail(EAGAIN, "somebody else has locked a part of it");
  const auto left = std::chrono::ceil<Milliseconds>(std::min<SteadyTime::duration>(deadline_ - now, pause_));
  pause_ = std::min(pause_ * 2, kLongestPause);
  const timespec time{left.count() / 1000, left.count() % 1000 * 1'000'000};
  const int number = ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
  if (number != 0) return fail(number, "waiting for a lock");
  return {};
}

}  // namespace pnfsrdma::library
