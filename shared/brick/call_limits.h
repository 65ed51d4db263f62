// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace pnfsrdma::brick {

// Records of the control protocol, both ends: the largest call is 65536 runs (1 MiB), the largest answer the
// million grants of kListAllGrants.
inline constexpr size_t kCallBytesMax = size_t{2} << 20;
inline constexpr size_t kAnswerBytesMax = size_t{64} << 20;

}  // namespace pnfsrdma::brick
