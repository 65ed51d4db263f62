// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "server/brickd/executor.h"
#include "server/brickd/exposures.h"
#include "shared/base/event_loop.h"

namespace pnfsrdma::brick {

// Destroys what may take its time. Regions: afterwards their handles are dead in the transport. That waits
// for a native flush in progress, so where flushes wait for a disk a thread of its own does it. Connections:
// by then nothing moves on them, but a device may keep a queue pair for long (a minute was seen with
// Soft-RoCE). Owned by the Brick; control loop only.
class Reaper {
 public:
  Reaper(EventLoop& loop, bool flushes_block);

  // `done` is called from the loop when all are dead, and all that were given earlier too: a handle may be
  // dying for somebody else already. At once when that cannot block.
  void destroy(Regions regions, std::function<void()> done);

  // Whoever lets go of it last does not wait for its end: that comes in a thread. Without the reaper, in
  // place.
  template <typename Owned>
  std::shared_ptr<Owned> adopt(std::unique_ptr<Owned> owned) {
    return {owned.release(), [executor = std::weak_ptr(connections_)](Owned* last) {
              bury(executor.lock(), std::shared_ptr<Owned>(last));
            }};
  }

 private:
  static void bury(const std::shared_ptr<Executor>& executor, std::shared_ptr<void> last);

  std::unique_ptr<Executor> executor_;
  std::shared_ptr<Executor> connections_;
};

}  // namespace pnfsrdma::brick
