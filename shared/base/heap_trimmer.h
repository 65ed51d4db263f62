// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pnfsrdma {

// malloc keeps what is freed: says when malloc_trim(3) is worth its while, which is for some time after much
// was freed (rm -rf, a burst of requests) and not for every little. For one thread, which calls tick() every
// few seconds.
class HeapTrimmer {
 public:
  // `many`: so much must have been freed. `ticks`: so often then, for what is freed a little later.
  constexpr HeapTrimmer(uint64_t many, int ticks) : many_(many), ticks_(ticks) {}

  // `freed`: things or bytes since the start. True: now is the time.
  bool tick(uint64_t freed) {
    if (freed - seen_ >= many_) {
      seen_ = freed;
      left_ = ticks_;
    }
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  const uint64_t many_;
  const int ticks_;
  uint64_t seen_ = 0;
  int left_ = 0;
};

}  // namespace pnfsrdma
