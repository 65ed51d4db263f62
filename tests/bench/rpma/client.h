// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/base/result.h"

namespace pnfsrdma::bench {

// Microseconds of each of `operations` at random places, one at a time: durable writes of 4 KiB, but for the last two.
// `method`:
//   apm    rpma_write and an RDMA READ of 8 bytes behind it (the appliance method)
//   gpspm  rpma_write and a message that has the server flush (the general purpose method)
//   flush  rpma_write and rpma_flush: native where this librpma and the device have it, else as apm
//   read   rpma_read of 4 KiB
//   chain  16 times rpma_write of 64 bytes, and one rpma_flush behind them
Result<std::vector<double>> measure_rpma(const std::string& address, const std::string& method,
                                         uint64_t operations);

}  // namespace pnfsrdma::bench
