// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/output/output.h"
#include "cli/output/progress_bar.h"

namespace pnfsrdma::cli {

// Shows on a terminal how far long work is: "1,234 directories: home/alice".
class PathsSeen {
 public:
  explicit PathsSeen(const Output& output) : bar_(stderr, output.complaints_terminal()) {}
  void saw(const std::string& path);

 private:
  using Clock = std::chrono::steady_clock;

  ProgressBar bar_;
  uint64_t count_ = 0;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);  // short work shows nothing
};

}  // namespace pnfsrdma::cli
