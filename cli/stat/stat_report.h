// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/output/terminal.h"
#include "cli/stat/mount_reader.h"

namespace pnfsrdma::cli {

// Everything a mount tells, for people.
std::string stat_report(const MountReading& reading, const Terminal& terminal);
// The same for programs: status, and the counters as "statistics".
nlohmann::json stat_json(const MountReading& reading);

}  // namespace pnfsrdma::cli
