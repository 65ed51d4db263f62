// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/bench/server/fleet.h"

namespace pnfsrdma::bench {

// Many files: made by all clients of a fleet, each with the next free number, in so many folders in turn.
// They stay.
struct Filling {
  static constexpr size_t kParts = 10;

  uint64_t files = 0;
  // Files a second in each tenth of them.
  std::vector<double> rates;
};

Result<Filling> fill(Fleet& fleet, Tree& tree, const ServerSettings& settings);

}  // namespace pnfsrdma::bench
