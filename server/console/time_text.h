// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shared/base/clock.h"

namespace pnfsrdma::console {

// RFC 3339 in UTC with milliseconds: "2026-11-21T21:06:00.123Z".
std::string rfc3339(const WallTime& time);

}  // namespace pnfsrdma::console
