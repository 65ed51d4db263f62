// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "library/preload/kernel.h"

namespace pnfsrdma::preload {

// As long as it lives no signal is delivered to this thread, those of the C library's own included: nobody comes
// between, and nobody jumps out.
class SignalsHeld {
 public:
  SignalsHeld() { (void)kernel(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &kAll, &before_, sizeof kAll); }
  ~SignalsHeld() { (void)kernel(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &before_, nullptr, sizeof kAll); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

  // Those that have come meanwhile are delivered now.
  void let_in() {
    uint64_t held = 0;
    (void)kernel(SYS_rt_sigprocmask, 2, &before_, &held, sizeof held);
    (void)kernel(SYS_rt_sigprocmask, 2, &held, nullptr, sizeof held);
  }

 private:
  static constexpr uint64_t kAll = ~uint64_t{0};
  uint64_t before_ = 0;
};

}  // namespace pnfsrdma::preload
