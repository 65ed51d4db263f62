// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/output/output.h"

namespace pnfsrdma::cli {

struct StatOptions {
  std::string path;  // empty: all mounts
  bool prometheus = false;
  std::optional<double> watch;  // seconds between readings
  uint64_t count = 0;           // of readings; 0: until interrupted
};

// `pnfsrdma stat`
Outcome<> run_stat(const StatOptions& options, Output& output);

}  // namespace pnfsrdma::cli
