// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "shared/rdma/transport.h"
#include "shared/rdma/verbs/domain.h"

namespace pnfsrdma::rdma::verbs {

// Connects to "host:port" from the domain's device: resolves the address and the route, makes the queue pair,
// waits for the answer. Errors as Transport::connect has them, and EXDEV when the address is reached through
// another device.
Result<Connected> connect(std::shared_ptr<VerbsDomain> domain, const std::string& address,
                          const ConnectOptions& options);

}  // namespace pnfsrdma::rdma::verbs
