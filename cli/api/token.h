// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/api/api_options.h"
#include "cli/output/failure.h"

namespace pnfsrdma::cli {

// The token to show: out of the file named by the options or the environment, or PNFSRDMA_TOKEN; empty: none.
// A file that others may read is refused.
Outcome<std::string> find_token(const ApiOptions& options);

// The value of an environment variable; empty when it is not set.
std::string environment(const char* name);

}  // namespace pnfsrdma::cli
