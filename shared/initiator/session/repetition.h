// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "shared/base/clock.h"
#include "shared/nfs4/operations.h"

namespace pnfsrdma::initiator {

// Pauses between repetitions: each twice the one before, up to a limit. A value.
class BackOff {
 public:
  BackOff(Milliseconds first, Milliseconds most) : next_(first), most_(most) {}
  Milliseconds next() {
    const Milliseconds pause = next_;
    next_ = std::min(next_ * 2, most_);
    return pause;
  }

 private:
  Milliseconds next_;
  Milliseconds most_;
};

// A COMPOUND is not atomic: when operations[failed] answered NFS4ERR_DELAY, those before it are done. Which
// ones to send when repeating: those that lead to the current and saved filehandle again, and `failed` and
// everything behind it; what has changed something (SETATTR, LAYOUTRETURN, …) is not done twice. Indices into
// `operations`, in order. Nothing: it cannot be repeated (an OPEN or CREATE, whose filehandle the rest builds
// on, is done).
std::optional<std::vector<size_t>> operations_to_repeat(
    const std::vector<nfs4::ArgumentOperation>& operations, size_t failed);

// A status that asks to try the same again a little later.
bool asks_for_repetition(nfs4::Status status);

}  // namespace pnfsrdma::initiator
