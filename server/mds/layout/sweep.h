// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "server/mds/layout/layouts.h"

// For the sources of Layouts.
namespace pnfsrdma::mds {

// Work on many files, so many of them at a time.
struct Layouts::Sweep {
  std::vector<InodeId> files;
  size_t next = 0;
  size_t running = 0;
  bool going = false;  // somebody is in sweep(): who ends meanwhile does not call it again
  bool good = true;
  std::function<void(InodeId, const Done&)> each;
  std::function<void(bool)> done;
};

}  // namespace pnfsrdma::mds
