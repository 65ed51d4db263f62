// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/mds/meta/key_value.h"

namespace pnfsrdma::mds {

// The grammar of keys.h and values.h as a whole. Raised when an older program could damage what a newer one
// wrote. 1: one brick. 2: brick records, addresses in zones.
inline constexpr uint64_t kFormatVersion = 2;

// Writes the version into an empty store. EUCLEAN for a store that is not ours, ENOTSUP for one of a newer
// program. Blocks.
Result<> check_format_version(KeyValueStore& store);

}  // namespace pnfsrdma::mds
