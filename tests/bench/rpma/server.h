// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shared/base/result.h"

namespace pnfsrdma::bench {

// Offers the last 2 MiB of a device DAX (whatever stands there is lost) to one client and flushes what it is
// asked to flush, until the client goes.
Result<> serve_rpma(const std::string& address, const std::string& dax);

}  // namespace pnfsrdma::bench
