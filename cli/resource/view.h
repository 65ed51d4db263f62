// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "cli/output/output.h"

namespace pnfsrdma::cli {

// How a member of a resource is shown.
struct Field {
  const char* title;
  const char* pointer;  // JSON pointer
  enum Kind {
    kText,
    kState,  // coloured by what it means
    kNumber,
    kBytes,
    kSeconds,  // a duration
    kFlag,     // yes, no
    kList,     // texts, with commas between
    kPercent,  // of a number from 0 to 1
  } kind = kText;
  bool may_shrink = false;  // cut where the terminal is narrow
};

// How a state is coloured.
Style style_of_state(std::string_view state);
Cell cell_of(const nlohmann::json& resource, const Field& field);

// A list: a line per resource; `none` when there is nothing. With --json the resources as they came.
void show_list(Output& output, const nlohmann::json& resources, std::span<const Field> fields,
               const char* none);
// One: a line per field.
void show_one(Output& output, const nlohmann::json& resource, std::span<const Field> fields);
// Below the members of one resource, for people: nothing when there are no parts.
void show_part(Output& output, const char* title, const nlohmann::json& parts, std::span<const Field> fields);

}  // namespace pnfsrdma::cli
