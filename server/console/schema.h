// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/console/json.h"
#include "server/console/problem.h"

namespace pnfsrdma::console {

// What is wrong with `value` under `schema`, by JSON pointers below `where`; empty: nothing. Knows the part
// of JSON Schema that openapi.json uses: type (a list too), enum, required, properties, additionalProperties,
// items, min/maxItems, minimum, maximum, min/maxLength (in code points), pattern, $ref into `document`.
// CHECKs that there is no other: a rule that is not enforced must not be written down.
std::vector<Problem::Wrong> find_wrong(const Json& document, const Json& schema, const Json& value,
                                       const std::string& where = "");

// The value a parameter's text stands for, by its schema's type; as text where it is not of that type, which
// find_wrong() then says.
Json parse_parameter(const Json& schema, const std::string& text);

}  // namespace pnfsrdma::console
