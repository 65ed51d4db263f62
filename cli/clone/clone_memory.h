// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace pnfsrdma::cli {

// What one of the calls says, and of which file.
struct CloneRefusal {
  int error = 0;
  bool of_source = false;
};

// Gives the open file `target` all bytes that `source` has now, in the same memory: all or nothing. Beyond these, it
// keeps what it has. Errors: of kOfferClone and kClone (shared/ring/control.h); ENOTTY: on no mount of pnfsrdma-fuse.
std::optional<CloneRefusal> clone_memory(int source, int target);

}  // namespace pnfsrdma::cli
