// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma::verbs {

// The devices of this host that rdma_cm can use: InfiniBand, RoCE, iWARP NICs, Soft-RoCE. One transport per
// device, because memory regions belong to one; which device an address leads to is the routing table's
// business: connect() answers EXDEV on the transports of the others, listen() EADDRNOTAVAIL.
//
// A transport lives as long as its device: after a removal everything on it ends, and a device that comes
// back is a new one, to be asked for again. Errors: ENODEV when there is no device, which is normal; EACCES
// and the like with what to do about it.
Result<std::vector<std::unique_ptr<Transport>>> make_transports();

// The addresses of this host that an RDMA device has, without port: "192.0.2.1", "2001:db8::1". Link-local
// and loopback addresses are left out.
std::vector<std::string> local_addresses();

}  // namespace pnfsrdma::rdma::verbs
