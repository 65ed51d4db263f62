// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/clock.h"
#include "shared/base/result.h"

namespace pnfsrdma::library {

// Bytes of a file to be locked: for one open file, which holds them until it unlocks them or is closed.
struct LockWish {
  bool exclusive = false;
  uint64_t offset = 0;
  uint64_t length = 0;  // 0: to the end, wherever that is by then
  int timeout_ms = 0;   // as poll(2)'s
};

// Tries again and again, in pauses that grow, until the time is over. EAGAIN: it is; EINTR: a signal came.
class LockWait {
 public:
  explicit LockWait(int timeout_ms);
  // Behind a try that found the lock taken: another one is due when this returns.
  Result<> pause();

 private:
  const SteadyTime deadline_;
  Milliseconds pause_{1};
};

}  // namespace pnfsrdma::library
