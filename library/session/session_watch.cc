// SPDX-License-Identifier: Apache-2.0
#include "library/session/session_watch.h"

namespace pnfsrdma::library::session {

Result<std::optional<pnfsrdma_event>> SessionWatch::take() {
  const auto taken = watch_->next();
  if (!taken) return std::nullopt;
  switch (taken->kind) {
    case initiator::WatchEvent::Kind::kSignal:
      break;
    case initiator::WatchEvent::Kind::kGapSlow:
      return pnfsrdma_event{PNFSRDMA_EVENT_GAP_SLOW, 0, range_.offset, range_.length, 0};
    case initiator::WatchEvent::Kind::kGapLost:
      return pnfsrdma_event{PNFSRDMA_EVENT_GAP_LOST, 0, range_.offset, range_.length, 0};
  }
  return pnfsrdma_event{PNFSRDMA_EVENT_SIGNAL, 0, taken->offset, taken->length, taken->value};
}

}  // namespace pnfsrdma::library::session
