// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/registration.h"

namespace pnfsrdma::rdma {

void Registration::retire() {
  state_.fetch_or(kDead, std::memory_order_acq_rel);
  // A pin() that is about to fail also counts for a moment; its unpin() wakes us again.
  for (uint32_t state = state_.load(std::memory_order_acquire); state != kDead;
       state = state_.load(std::memory_order_acquire)) {
    state_.wait(state, std::memory_order_acquire);
  }
}

}  // namespace pnfsrdma::rdma
