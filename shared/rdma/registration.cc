// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/registration.h"

#include <algorithm>

namespace pnfsrdma::rdma {

void Registration::retire() {
  state_.fetch_or(kDead, std::memory_order_acq_rel);
  // A pin() that is about to fail also counts for a moment; its unpin() wakes us again.
  for (uint32_t state = state_.load(std::memory_order_acquire); state != kDead;
       state = state_.load(std::memory_order_acquire)) {
    state_.wait(state, std::memory_order_acquire);
  }
}

Flushed flush_by_pieces(Registration& registration, MutableByteSpan range) {
  while (!range.empty()) {
    const MutableByteSpan piece = range.first(std::min<size_t>(range.size(), kFlushPieceBytes));
    const Pin pin(registration);
    if (!pin) return Flushed::kRegionDied;
    if (!registration.flusher()->flush(piece)) return Flushed::kFailed;
    range = range.subspan(piece.size());
  }
  return Flushed::kYes;
}

}  // namespace pnfsrdma::rdma
