// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "shared/base/result.h"

namespace pnfsrdma::brick {

// One boot of a host: random, from the kernel.
using BootId = std::array<std::byte, 16>;

Result<BootId> read_boot_id();

}  // namespace pnfsrdma::brick
