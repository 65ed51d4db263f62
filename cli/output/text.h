// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pnfsrdma::cli {

// UTF-8 text on a terminal. What comes from servers and file names is shown through printable(), so that it
// cannot steer the terminal.

// The same text with control characters and bytes that are no UTF-8 shown as '?'.
std::string printable(std::string_view text);

// How many columns it takes: wide characters two, combining ones none.
size_t columns_of(std::string_view text);

// At most so many columns; what is cut is shown by an ellipsis.
std::string shortened(std::string_view text, size_t columns);

}  // namespace pnfsrdma::cli
