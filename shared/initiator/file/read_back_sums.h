// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace pnfsrdma::initiator {

// What bricks have read of a file behind a flush.
struct ReadBackSums {
  bool medium = true;  // false: some of it from a copy in front of it, as a page cache
  std::vector<uint32_t> checksums;
};

}  // namespace pnfsrdma::initiator
