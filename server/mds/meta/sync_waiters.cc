// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/sync_waiters.h"

#include <utility>

namespace pnfsrdma::mds {

void SyncWaiters::run(Sequence synced) {
  while (!waiting_.empty() && waiting_.begin()->first <= synced) {
    const auto callback = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    callback();
  }
}

}  // namespace pnfsrdma::mds
