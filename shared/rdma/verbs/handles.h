// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "shared/base/owned.h"

// The C handles of rdma-core, owned. Objects that hold several keep them in creation order, so that they go
// in the reverse one.
namespace pnfsrdma::rdma::verbs {

using ProtectionDomainHandle = Owned<ibv_pd, ibv_dealloc_pd>;
using CompletionChannel = Owned<ibv_comp_channel, ibv_destroy_comp_channel>;
using CompletionQueueHandle = Owned<ibv_cq, ibv_destroy_cq>;
using QueuePairHandle = Owned<ibv_qp, ibv_destroy_qp>;
using EventChannel = Owned<rdma_event_channel, rdma_destroy_event_channel>;
using Identifier = Owned<rdma_cm_id, rdma_destroy_id>;
using DeviceNames = Owned<ibv_device*, ibv_free_device_list>;
using DeviceContexts = Owned<ibv_context*, rdma_free_devices>;

}  // namespace pnfsrdma::rdma::verbs
