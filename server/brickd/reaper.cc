// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/reaper.h"

#include <utility>

namespace pnfsrdma::brick {

Reaper::Reaper(EventLoop& loop, bool flushes_block) {
  if (flushes_block) executor_ = std::make_unique<Executor>(loop, "brick-reap");
}

void Reaper::destroy(Regions regions, std::function<void()> done) {
  if (!executor_ || (regions.empty() && executor_->unfinished() == 0)) {
    regions.clear();
    return done();
  }
  const auto owned = std::make_shared<Regions>(std::move(regions));
  executor_->run([owned] { owned->clear(); }, std::move(done));
}

}  // namespace pnfsrdma::brick
