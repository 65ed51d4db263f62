// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shared/base/random.h"
#include "shared/rdma/transport.h"
#include "tests/doubles/rdma_memory/network.h"

namespace pnfsrdma::rdma::memory {

// The in-process transport. Several transports on one Network reach each other's listeners. One-sided
// operations run in the thread that calls submit(), as a NIC would do them: the target's thread need not
// poll. No threads of its own: `on_request` is called in the thread that connects, which then waits for
// accept() or reject().
//
// Keys come from `random`, which must outlive the transport.
//
//   auto network = std::make_shared<memory::Network>();
//   auto transport = memory::make_transport(network, random);
std::unique_ptr<Transport> make_transport(std::shared_ptr<Network> network, Random& random);

}  // namespace pnfsrdma::rdma::memory
