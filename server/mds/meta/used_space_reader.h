// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "server/mds/meta/key_value.h"
#include "server/mds/meta/used_space.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

// read_used_space() in a thread of its own, beside the loop.
class UsedSpaceReader {
 public:
  // `done` is called in the loop, once, never from inside; not when this has gone.
  using Done = std::function<void(Result<UsedSpace>)>;
  UsedSpaceReader(EventLoop& loop, std::unique_ptr<KeyValueStore> store, std::vector<BrickNumber> by_zone,
                  Done done);
  // Stops it, and waits until it has.
  ~UsedSpaceReader();
  UsedSpaceReader(const UsedSpaceReader&) = delete;
  UsedSpaceReader& operator=(const UsedSpaceReader&) = delete;

 private:
  const std::unique_ptr<KeyValueStore> store_;
  std::atomic<bool> stopped_ = false;
  Lifetime lifetime_;
  Thread thread_;
};

}  // namespace pnfsrdma::mds
