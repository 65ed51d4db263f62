// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace pnfsrdma::console {

// Keeps the order of members: answers read as the document does.
using Json = nlohmann::ordered_json;

// Bytes that are no UTF-8 (a client's name for itself) become U+FFFD.
inline std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pnfsrdma::console
