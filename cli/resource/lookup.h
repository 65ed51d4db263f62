// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/api/api_client.h"

namespace pnfsrdma::cli {

// Resources by what people call them. kNotFound when nothing is called so, kUsage when several are: the
// failure lists them.

// A brick by its id, the beginning of it, or its address.
Outcome<nlohmann::json> find_brick(ApiClient& client, const std::string& called);
// An export by its number or path.
Outcome<nlohmann::json> find_export(ApiClient& client, const std::string& called);
// A client by its id, the beginning of it, or its name.
Outcome<nlohmann::json> find_client(ApiClient& client, const std::string& called);
// A token by its id or name.
Outcome<nlohmann::json> find_token_called(ApiClient& client, const std::string& called);

}  // namespace pnfsrdma::cli
