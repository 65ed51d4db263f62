// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/bytes.h"

namespace pnfsrdma::rdma::iwarp {

// CRC32C (Castagnoli, as iSCSI and MPA use it) of `bytes`. To continue over several pieces, pass the result
// for what came before: crc32c(b, crc32c(a)) == crc32c(a ++ b). Uses the CPU's instruction where there is
// one.
uint32_t crc32c(ByteSpan bytes, uint32_t before = 0);

// The same by table, on any CPU. Public so that a test can hold one against the other.
uint32_t crc32c_by_table(ByteSpan bytes, uint32_t before = 0);

}  // namespace pnfsrdma::rdma::iwarp
