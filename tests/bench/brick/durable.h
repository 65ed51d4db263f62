// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/bench/brick/settings.h"

namespace pnfsrdma::bench {

// Latency of a durable 4 KiB WRITE at random places of one grant: by native flush, where the brick offers
// it, and by the commit message, each with its WRITE under one doorbell. Prints percentiles. Needs a running
// brick without MDS.
int run_durable(const BrickSettings& settings);

}  // namespace pnfsrdma::bench
