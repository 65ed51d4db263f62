// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/rdma/transport.h"
#include "shared/rdma/verbs/handles.h"

namespace pnfsrdma::rdma::verbs {

// The outcome a device's completion status stands for, for an operation of this kind.
Outcome outcome_of(ibv_wc_status status, Opcode opcode);

}  // namespace pnfsrdma::rdma::verbs
