// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "cli/output/terminal.h"

namespace pnfsrdma::cli {

// "[#####.....]  50 %  erasing", one line that is drawn over again on a terminal; nothing elsewhere.
class ProgressBar {
 public:
  ProgressBar(std::FILE* stream, const Terminal& terminal) : stream_(stream), terminal_(terminal) {}
  // Leaves the line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(double progress, const std::string& message);
  // Where nobody knows how much there is.
  void show(const std::string& message);

  // The line itself, exactly `columns` - 1 wide at most.
  static std::string line(double progress, const std::string& message, size_t columns);

 private:
  void draw(const std::string& line);

  std::FILE* const stream_;
  const Terminal terminal_;
  bool drawn_ = false;
};

}  // namespace pnfsrdma::cli
