// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/console/problem.h"

namespace pnfsrdma::console {

// Names a state of a resource (RFC 9110, 8.8.3): the quoted start of the SHA-256 of what can be changed of
// it.
std::string etag_of_text(const std::string& text);

// The same of one answer as a whole: what can be changed (its ETag), then everything else. As If-Match it
// stands for what can be changed, as If-None-Match for all of it.
std::string etag_of_answer(const std::string& etag, const std::string& body);
// Whether a GET's If-None-Match names this answer: it is not sent again then.
bool is_known(std::string_view if_none_match, std::string_view etag);

enum class Precondition { kRequired, kOptional };
// Whether a change meant for `if_match` may go on: precondition-required, changed-meanwhile.
Answer<> check_if_match(const std::optional<std::string>& if_match, const std::string& etag,
                        Precondition precondition);

}  // namespace pnfsrdma::console
