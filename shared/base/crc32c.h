// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/bytes.h"

namespace pnfsrdma {

// CRC32C (Castagnoli, as iSCSI and MPA use it) of `bytes`. To continue over several pieces, pass the result
// for what came before: crc32c(b, crc32c(a)) == crc32c(a ++ b). Uses the CPU's instruction where there is
// one.
uint32_t crc32c(ByteSpan bytes, uint32_t before = 0);

// Of two pieces, from the sums of each: crc32c_joined(crc32c(a), crc32c(b), b.size()) == crc32c(a ++ b).
uint32_t crc32c_joined(uint32_t front, uint32_t back, uint64_t back_size);

// The same by table, on any CPU. Public so that a test can hold one against the other.
uint32_t crc32c_by_table(ByteSpan bytes, uint32_t before = 0);

}  // namespace pnfsrdma
