// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "shared/base/event_loop.h"

namespace pnfsrdma::mds {

inline constexpr size_t kIdsPerTurn = 64;

// Calls `visit` for each of `ids`, kIdsPerTurn a turn of the loop, the first of them at once; what one of them
// named may be gone by its turn. `done` is called at the end; nothing is when `alive` has gone. Control loop only;
// the loop lives as long as `alive`.
void walk_ids(EventLoop& loop, std::vector<uint64_t> ids, std::weak_ptr<const void> alive,
              std::function<void(uint64_t)> visit, std::function<void()> done);

}  // namespace pnfsrdma::mds
