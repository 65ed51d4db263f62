// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/api/api_client.h"

namespace pnfsrdma::cli {

// Resources by what people call them; the beginning of an id does when it is the only one that begins so.
// kNotFound when nothing is called so: the failure names what may have been meant. kUsage when several are: the
// failure lists them.

// A brick's address as the server has it: "/run/brick.sock" is "unix:/run/brick.sock", "host:20050" is
// "tcp:host:20050". An id stays as it is.
std::string brick_address(const std::string& typed);
// A brick by its id, the beginning of it, or its address.
Outcome<nlohmann::json> find_brick(ApiClient& client, const std::string& called);
// An export by its number or path.
Outcome<nlohmann::json> find_export(ApiClient& client, const std::string& called);
// A snapshot by its name or number.
Outcome<nlohmann::json> find_snapshot(ApiClient& client, const std::string& called);
// A client by its id, the beginning of it, or its name.
Outcome<nlohmann::json> find_client(ApiClient& client, const std::string& called);
// A user by name.
Outcome<nlohmann::json> find_user(ApiClient& client, const std::string& called);
// The id of a layout by less than all of it: the beginning of a client's id, say. A whole id is not looked up.
Outcome<std::string> find_layout(ApiClient& client, const std::string& called);
// A token by its id or name.
Outcome<nlohmann::json> find_token_called(ApiClient& client, const std::string& called);

}  // namespace pnfsrdma::cli
