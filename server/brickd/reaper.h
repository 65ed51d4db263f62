// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "server/brickd/executor.h"
#include "server/brickd/exposures.h"
#include "shared/base/event_loop.h"

namespace pnfsrdma::brick {

class Connection;

// Destroys regions: afterwards their handles are dead in the transport. That waits for a native flush in
// progress, and a device takes its time for each of many; so a thread of its own does it, but for a few where
// no flush blocks. Owned by the Brick; control loop only.
class Reaper {
 public:
  Reaper(EventLoop& loop, bool flushes_block);

  // `done` is called from the loop when all are dead, and all that were given earlier too: a handle may be
  // dying for somebody else already. At once when that cannot take long.
  void destroy(Regions regions, std::function<void()> done);
  // All of a connection that has failed; the loop does not even take them out. Null: none.
  void destroy_all(std::shared_ptr<Connection> connection, std::function<void()> done);

 private:
  bool at_once(size_t regions) const;

  const bool flushes_block_;
  Executor executor_;
};

}  // namespace pnfsrdma::brick
