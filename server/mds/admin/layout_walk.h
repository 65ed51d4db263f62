// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "server/mds/grants/layout_table.h"
#include "shared/base/event_loop.h"

namespace pnfsrdma::mds {

inline constexpr size_t kLayoutsPerTurn = 64;
// A fragmented file has a grant for each piece: so many of them count as one layout more.
inline constexpr size_t kGrantsAsOneLayout = 64;

// Calls `visit` for each layout that is out, or for those of one client (0: everybody), `per_turn` a turn of
// the loop, or fewer that have many grants: there are as many as clients like. The first of them at once. `visit` may
// end the layout. One that is granted meanwhile may be left out. `done` is called at the end; nothing is when `alive`
// has gone. Control loop only; loop and table live as long as `alive`.
void walk_layouts(EventLoop& loop, const LayoutTable& table, uint64_t client, std::weak_ptr<const void> alive,
                  std::function<void(const HeldLayout&)> visit, std::function<void()> done,
                  size_t per_turn = kLayoutsPerTurn);

}  // namespace pnfsrdma::mds
