// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cli/output/failure.h"

namespace pnfsrdma::cli {

// What an answer of this HTTP status means for who asked; `body` is problem details (RFC 9457) or, from
// something else that listens there, anything.
Failure failure_of(int status, std::string_view body);

}  // namespace pnfsrdma::cli
