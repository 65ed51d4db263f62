// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/sync_waiters.h"

#include <utility>

namespace pnfsrdma::mds {

Sequence SyncWaiters::run(Sequence synced, const std::function<bool()>& enough) {
  while (!waiting_.empty() && waiting_.begin()->first <= synced) {
    if (enough()) return waiting_.begin()->first - 1;
    const auto callback = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    callback();
  }
  return synced;
}

}  // namespace pnfsrdma::mds
