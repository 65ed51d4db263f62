// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/resource/resource_command.h"

namespace pnfsrdma::cli {

// The commands that need no server (doctor asks one that is named): stat, doctor, clone, diff, restore, run.
void add_host_commands(CLI::App& app, Administration& administration);

}  // namespace pnfsrdma::cli
