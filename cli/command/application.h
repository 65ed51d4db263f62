// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/resource/resource_command.h"

namespace pnfsrdma::cli {

// The command line as a tree: every noun with its verbs. `administration` outlives it.
void build_application(CLI::App& app, Administration& administration);

// Reads the line and runs what it asks for. The program's exit code.
int run_application(int count, char** arguments);

}  // namespace pnfsrdma::cli
