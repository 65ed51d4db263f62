// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/resource/resource_command.h"

namespace pnfsrdma::cli {

// cluster init, join, invite, leave: behind add_cluster_commands(), which makes the noun.
void add_membership_commands(CLI::App& app, Administration& administration);

}  // namespace pnfsrdma::cli
