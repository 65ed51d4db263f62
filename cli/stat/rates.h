// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/output/terminal.h"
#include "cli/stat/mount_reader.h"

namespace pnfsrdma::cli {

// One kind of operation between two readings, as nfsiostat(8) shows it.
struct Rate {
  std::string operation;  // "read", "write", "sync", "mds_call"
  double operations_per_second = 0;
  double bytes_per_second = 0;
  double bytes_per_operation = 0;
  double average_seconds = 0;  // of what ended in the interval
  double by_rdma = 0;          // share of the bytes, 0 to 1
};
using Rates = std::array<Rate, 4>;

// `later` is of the same mount. Counters that ran backwards (a new mount) count from zero.
Rates rates_between(const MountReading& earlier, const MountReading& later,
                    std::chrono::duration<double> interval);

std::string rates_report(const Rates& rates, const Terminal& terminal);
nlohmann::json rates_json(const Rates& rates);

}  // namespace pnfsrdma::cli
