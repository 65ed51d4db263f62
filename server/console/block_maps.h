// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "server/console/administration.h"
#include "server/console/snapshot.h"
#include "shared/base/guarded.h"

namespace pnfsrdma::console {

// The block map of each brick, one snapshot for all who look: however many they are, a brick is asked ten
// times a second at most. Thread-safe.
class BlockMaps {
 public:
  BlockMaps(ControlLoop& loop, Administration& administration)
      : loop_(loop), administration_(administration) {}

  // ENOENT: there is no such brick; EAGAIN: it is not ready, or the loop is too busy; ETIMEDOUT.
  Result<std::shared_ptr<const BlockMap>> get(const std::string& brick) { return snapshot_of(brick)->get(); }
  // After a change by ourselves: the next get() of each asks.
  void outdate() { snapshots_.lock()->clear(); }

 private:
  std::shared_ptr<Snapshot<BlockMap>> snapshot_of(const std::string& brick) {
    auto snapshots = snapshots_.lock();
    std::shared_ptr<Snapshot<BlockMap>>& found = (*snapshots)[brick];
    if (!found) {
      found = std::make_shared<Snapshot<BlockMap>>(loop_, Snapshot<BlockMap>::Take([this, brick](auto done) {
                                                     administration_.block_map(brick, std::move(done));
                                                   }));
    }
    return found;
  }

  ControlLoop& loop_;
  Administration& administration_;  // in the loop only
  Guarded<std::map<std::string, std::shared_ptr<Snapshot<BlockMap>>>> snapshots_;
};

}  // namespace pnfsrdma::console
