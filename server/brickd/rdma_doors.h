// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "server/brickd/brick.h"
#include "server/brickd/config.h"
#include "shared/base/result.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::brick {

using RdmaTransports = std::vector<std::unique_ptr<rdma::Transport>>;

// The transports of this host's RDMA devices, if the configuration wants any. None is normal under "auto" and
// said in the log; an error when data.rdma names addresses. Raises the soft limit of locked memory to the
// hard one.
Result<RdmaTransports> open_rdma_devices(const Config& config);

// Listens on the addresses of data.rdma. One that "auto" found and that cannot be used is said in the log;
// one that was named is an error. The transports outlive the brick.
Result<> open_rdma_doors(Brick& brick, const RdmaTransports& transports, const Config& config);

}  // namespace pnfsrdma::brick
