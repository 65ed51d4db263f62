// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/output/failure.h"

namespace pnfsrdma::cli {

// Runs a program, of PATH if its name has no slash, and waits for its end. What it writes to standard output; its
// complaints go to ours. kFailed: it cannot be started, or fails. Any thread.
Outcome<std::string> output_of(const std::vector<std::string>& words);

// pnfsrdma-mdsd: beside this program as it was built, then as it is installed; else wherever PATH has it.
std::string daemon_program();
// pnfsrdma-brickd, likewise.
std::string brick_program();

}  // namespace pnfsrdma::cli
