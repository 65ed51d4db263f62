// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/reaper.h"

#include <utility>

#include "server/brickd/connection.h"

namespace pnfsrdma::brick {

namespace {
// So many die within the turn: a device has them in a millisecond or two.
constexpr size_t kAtOnceMax = 16;
}  // namespace

Reaper::Reaper(EventLoop& loop, bool flushes_block)
    : flushes_block_(flushes_block), executor_(loop, "brick-reap") {}

bool Reaper::at_once(size_t regions) const {
  return executor_.unfinished() == 0 && (regions == 0 || (!flushes_block_ && regions <= kAtOnceMax));
}

void Reaper::destroy(Regions regions, std::function<void()> done) {
  if (at_once(regions.size())) {
    regions.clear();
    return done();
  }
  const auto owned = std::make_shared<Regions>(std::move(regions));
  executor_.run([owned] { owned->clear(); }, std::move(done));
}

void Reaper::destroy_all(std::shared_ptr<Connection> connection, std::function<void()> done) {
  const size_t regions = connection ? connection->exposures().size() : 0;
  if (at_once(regions)) {
    if (connection) connection->exposures().take_all().clear();
    return done();
  }
  // It is kept until its regions are gone: regions first, queue pair last.
  executor_.run(
      [connection] {
        if (connection) connection->exposures().take_all().clear();
      },
      [connection, done = std::move(done)] { done(); });
}

}  // namespace pnfsrdma::brick
