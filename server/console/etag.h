// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "server/console/problem.h"

namespace pnfsrdma::console {

// Names a state of a resource (RFC 9110, 8.8.3): the quoted start of the SHA-256 of what can be changed of
// it.
std::string etag_of_text(const std::string& text);

enum class Precondition { kRequired, kOptional };
// Whether a change meant for `if_match` may go on: precondition-required, changed-meanwhile.
Answer<> check_if_match(const std::optional<std::string>& if_match, const std::string& etag,
                        Precondition precondition);

}  // namespace pnfsrdma::console
