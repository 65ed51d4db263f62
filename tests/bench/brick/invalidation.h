// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/rdma/transport.h"

namespace pnfsrdma::bench {

// Posts an empty SEND with Invalidate of `key` on a queue pair of the verbs transport, past that transport,
// which never does such a thing. Its completion is an error of the queue pair, if it ends it. False when the
// device did not take it.
bool send_with_invalidate(rdma::QueuePair& queue_pair, uint32_t key);

}  // namespace pnfsrdma::bench
