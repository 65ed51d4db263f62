// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/ops/compound.h"
#include "server/mds/state/idle_connections.h"
#include "shared/rpc/server.h"
#include "shared/rpc_rdma/upper_layer.h"

namespace pnfsrdma::mds {

// NFS version 4 as an ONC RPC program (100003): what a rpc::Listener makes of its connections. `compounds`
// must outlive every connection, `connections`, which watches them, every listener.
// `memory` counts what the connections hold; null: nobody does.
rpc::Service nfs_service(Compounds& compounds, IdleConnections& connections,
                         rpc::MemoryBudget* memory = nullptr);

// What of it goes by direct data placement where RPC-over-RDMA carries it (RFC 8267).
rpc_rdma::UpperLayer nfs_upper_layer();

}  // namespace pnfsrdma::mds
