// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "server/brickd/executor.h"
#include "server/brickd/exposures.h"
#include "shared/base/event_loop.h"

namespace pnfsrdma::brick {

// Destroys regions: afterwards their handles are dead in the transport. That waits for a native flush in
// progress, so where flushes wait for a disk a thread of its own does it. Owned by the Brick; control loop
// only.
class Reaper {
 public:
  Reaper(EventLoop& loop, bool flushes_block);

  // `done` is called from the loop when all are dead, and all that were given earlier too: a handle may be
  // dying for somebody else already. At once when that cannot block.
  void destroy(Regions regions, std::function<void()> done);

 private:
  std::unique_ptr<Executor> executor_;
};

}  // namespace pnfsrdma::brick
