// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "shared/base/result.h"
#include "shared/brick/blocks_protocol.h"

namespace pnfsrdma::library::blocks {

// What a program is told of a refusal, which is not kOk. `what` was asked for: "alloc".
Error to_error(brick::blocks::Status status, std::string_view what);

}  // namespace pnfsrdma::library::blocks
