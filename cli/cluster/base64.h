// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pnfsrdma::cli {

// RFC 4648, section 4.
std::string to_base64(std::string_view bytes);

// RFC 4648, section 5, without padding. nullopt: it is not.
std::string to_base64url(std::string_view bytes);
std::optional<std::string> from_base64url(std::string_view text);

}  // namespace pnfsrdma::cli
