// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/paths_seen.h"

#include <fmt/format.h>

namespace pnfsrdma::cli {

void PathsSeen::saw(const std::string& path) {
  ++count_;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  bar_.show(fmt::format("{} directories: {}", count_, path));
}

}  // namespace pnfsrdma::cli
