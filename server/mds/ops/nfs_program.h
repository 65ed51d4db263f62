// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/ops/compound.h"
#include "shared/rpc/server.h"

namespace pnfsrdma::mds {

// NFS version 4 as an ONC RPC program (100003): what a rpc::Listener makes of its connections. `compounds`
// must outlive every connection.
rpc::Service nfs_service(Compounds& compounds);

}  // namespace pnfsrdma::mds
