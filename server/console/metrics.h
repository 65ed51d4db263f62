// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "server/console/inventory.h"

namespace pnfsrdma::console {

// What the console itself has done.
struct ConsoleCounters {
  uint64_t requests = 0;
  uint64_t refused = 0;  // answered with 4xx or 5xx
  uint64_t streams = 0;  // open now
  uint64_t events = 0;
  std::optional<double> certificate_seconds_left;
};

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// Prometheus text. Names: pnfsrdma_mds_*, pnfsrdma_brick_*{brick="UUID"}, pnfsrdma_console_*; README.md lists
// them.
std::string metrics_text(const Numbers& numbers, const ConsoleCounters& console, const std::string& version);

}  // namespace pnfsrdma::console
