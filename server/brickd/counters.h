// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace pnfsrdma::brick {

// What data threads count. Relaxed: read for statistics only.
struct Counters {
  std::atomic<uint64_t> commit_messages = 0;
};

}  // namespace pnfsrdma::brick
