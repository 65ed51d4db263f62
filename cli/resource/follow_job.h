// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "cli/api/api_client.h"
#include "cli/output/output.h"

namespace pnfsrdma::cli {

// Waits for a job's end, with a progress bar for a human. The job as it ended; kFailed when it failed or was
// cancelled.
Outcome<nlohmann::json> follow_job(ApiClient& client, nlohmann::json job, Output& output);

}  // namespace pnfsrdma::cli
