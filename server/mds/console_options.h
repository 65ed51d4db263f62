// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/console/console.h"
#include "server/mds/admin/config.h"

namespace pnfsrdma::mds {

// The console as the configuration wants it. Its pages are where it says, else beside the program (a build's
// own: ../web), else where they are installed.
console::ConsoleOptions console_options(const Config& config, const std::string& config_path);

}  // namespace pnfsrdma::mds
