// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/mds/bricks/brick_set.h"
#include "shared/base/event_loop.h"

namespace pnfsrdma::mds {

// What takes long on a brick, piece by piece beside the work of the server. Both end by themselves when the
// brick goes away; neither leaves anything behind that a crash in the middle would make wrong. Control loop
// only.
struct BrickJobEvents {
  std::function<void(double progress, const std::string& message)> on_progress;  // 0 to 1
  std::function<void(Result<std::string> outcome)> on_end;  // once, what was found; ECANCELED
};

// May be called at any time, from on_progress too; after the end it does nothing.
using CancelJob = std::function<void()>;

// Erases every block of a brick that no file uses: all of them become dirty and are zeroed. EBUSY: files use
// it; EAGAIN: it is not ready; EIO. Cancelled, the brick has some blocks erased and others not.
// Meanwhile nothing new is put on it.
CancelJob format_brick(EventLoop& loop, BrickSet& bricks, BrickNumber number, BrickJobEvents events);

// Compares the brick's blocks with the metadata while both are in use: what differs twice, kCheckPause apart,
// is a problem. Changes nothing. The outcome names what was found; EUCLEAN: problems; EAGAIN, EIO.
CancelJob check_brick(EventLoop& loop, BrickSet& bricks, BrickNumber number, BrickJobEvents events);
inline constexpr Milliseconds kCheckPause{2000};

}  // namespace pnfsrdma::mds
