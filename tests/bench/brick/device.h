// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "shared/base/random.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::bench {

// "verbs": the first RDMA device; "iwarp": our own over TCP. ENODEV without a device.
Result<std::unique_ptr<rdma::Transport>> open_transport(const std::string& name, Random& random);

// Nanoseconds of CLOCK_MONOTONIC: the same clock in all processes of the machine.
int64_t now_ns();

}  // namespace pnfsrdma::bench
