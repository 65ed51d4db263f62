// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/brick/session_messages.h"
#include "shared/initiator/brick/message_area.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::initiator {

// How the work ids of receives are told from those of WorkItems, which are addresses: by the lowest bit.
constexpr uint64_t receive_work_id(size_t slot) {
  return (uint64_t{slot} << 1) | 1;
}
constexpr bool is_receive_work_id(uint64_t id) {
  return (id & 1) != 0;
}
constexpr size_t receive_slot(uint64_t id) {
  return static_cast<size_t>(id >> 1);
}

// What the brick said to our hello: everything about this connection that layouts do not say.
struct Hello {
  xdr::FixedOpaque<8> verifier{};
  uint32_t connection = 0;
  std::unordered_map<uint64_t, brick::HelloGrant> grants;
};

// Says hello on a new queue pair that nobody else uses yet, and takes the answer, all parts of it: one round
// trip. Leaves MessageArea::kReceives receives posted (or as many as the queue pair allows). Errors:
// ETIMEDOUT, ECONNRESET, EPROTO.
Result<Hello> say_hello(rdma::QueuePair& queue_pair, const MessageArea& area, SteadyTime deadline);

}  // namespace pnfsrdma::initiator
