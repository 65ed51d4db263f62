// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shared/base/random.h"

namespace pnfsrdma::console {

// 256 bits from the CSPRNG, as 43 characters of base64url.
std::string new_secret(Random& random);
// 64 bits as 16 hexadecimal digits: a name, no secret.
std::string new_name(Random& random);
// What is kept of a secret: SHA-256, in hexadecimal digits. Enough for 256 random bits, not for a password.
std::string digest_of(std::string_view secret);
// In constant time, for values of the same length.
bool same_secret(std::string_view one, std::string_view other);

}  // namespace pnfsrdma::console
