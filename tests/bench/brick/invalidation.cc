// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/brick/invalidation.h"

#include "shared/rdma/verbs/queue_pair.h"

namespace pnfsrdma::bench {

bool send_with_invalidate(rdma::QueuePair& queue_pair, uint32_t key) {
  auto* verbs = dynamic_cast<rdma::verbs::VerbsQueuePair*>(&queue_pair);
  if (verbs == nullptr) return false;
  ibv_send_wr request{};
  request.wr_id = ~uint64_t{0} >> 1;  // of no work request that the transport knows
  request.opcode = IBV_WR_SEND_WITH_INV;
  request.invalidate_rkey = key;
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(verbs->endpoint().queue_pair(), &request, &refused) == 0;
}

}  // namespace pnfsrdma::bench
