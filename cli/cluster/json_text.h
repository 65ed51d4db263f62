// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/output/failure.h"

// Changes of one member in the text of a JSON object with comments, as an administrator keeps it: all else stays as it
// is, byte for byte. kFailed: the text is no such object. Any thread.
namespace pnfsrdma::cli {

// What the text means. nullopt: it is no object.
std::optional<nlohmann::json> read_json_text(const std::string& text);

// With this member, in the place of the one of this name if there is one, else in front of all.
Outcome<std::string> with_member(const std::string& text, const std::string& name,
                                 const nlohmann::json& value);

// Without the member of this name.
Outcome<std::string> without_member(const std::string& text, const std::string& name);

}  // namespace pnfsrdma::cli
