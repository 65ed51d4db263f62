// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/resource/resource_command.h"

namespace pnfsrdma::cli {

// What the mount that holds the path tells of its caller's quota there: bytes that are used, and that may be used more
// (null: no limit). Asks the server through the mount, in the caller's name. kNotFound, kNotPermitted, kUnreachable;
// kFailed: quotas are off.
Outcome<nlohmann::json> own_quota(const std::string& path);

// quota mine
void add_own_quota_command(CLI::App* noun, Administration& admin);

}  // namespace pnfsrdma::cli
