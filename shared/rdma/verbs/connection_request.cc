// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/connection_request.h"

#include <algorithm>
#include <cerrno>

#include "shared/rdma/verbs/address.h"
#include "shared/rdma/verbs/domain.h"
#include "shared/rdma/verbs/queue_pair.h"

namespace pnfsrdma::rdma::verbs {

VerbsConnectionRequest::VerbsConnectionRequest(std::shared_ptr<Device> device, ConnectionEvents events,
                                               Identifier identifier, const ConnectionEvent& request)
    : device_(std::move(device)),
      said_(decode_private_data(request.private_data)),
      peer_reads_(request.responder_resources),
      peer_serves_(request.initiator_depth),
      events_(std::move(events)),
      identifier_(std::move(identifier)) {
  const auto peer = Address::from(rdma_get_peer_addr(identifier_.get()));
  peer_ = peer ? peer->to_string() : "?";
}

VerbsConnectionRequest::~VerbsConnectionRequest() {
  reject({});
}

Result<std::unique_ptr<QueuePair>> VerbsConnectionRequest::accept(std::shared_ptr<ProtectionDomain> domain,
                                                                  ByteSpan private_data,
                                                                  const QueuePairLimits& limits) {
  if (private_data.size() > kUserPrivateDataMax) return fail(EMSGSIZE, "too much private data");
  TRY_ASSIGN(auto own, own_domain(std::move(domain), *device_));
  QueuePairLimits agreed = limits;
  agreed.native_flush = limits.native_flush && device_->limits().native_flush && said_.native_flush;
  agreed.atomic_write = limits.atomic_write && device_->limits().atomic_write && said_.atomic_write;
  const auto depth = static_cast<uint8_t>(
      std::clamp<uint32_t>(limits.read_depth, 1, std::min(device_->limits().read_depth_max, 255u)));
  // The peer's depths cap ours; the other way round it is told below.
  const uint8_t reads_in = std::min(depth, peer_reads_);
  const uint8_t reads_out = std::max<uint8_t>(1, std::min(depth, peer_serves_));

  std::lock_guard lock(mutex_);
  if (!identifier_) return fail(EALREADY, "this connection request was answered before");
  TRY_ASSIGN(auto queue_pair,
             VerbsQueuePair::make(std::move(own), std::move(events_), std::move(identifier_), agreed));
  TRY(queue_pair->endpoint().modify_to_ready(reads_in, reads_out, {}));
  const Bytes said = encode_private_data({.prefixed = said_.prefixed,
                                          .native_flush = agreed.native_flush,
                                          .atomic_write = agreed.atomic_write,
                                          .user = Bytes(private_data.begin(), private_data.end())});
  queue_pair->answer_later(said, reads_in, reads_out);
  return queue_pair;
}

void VerbsConnectionRequest::reject(ByteSpan private_data) {
  std::lock_guard lock(mutex_);
  if (!identifier_) return;
  if (private_data.size() > kUserPrivateDataMax) private_data = private_data.first(kUserPrivateDataMax);
  const Bytes said = encode_private_data(
      {.prefixed = said_.prefixed, .user = Bytes(private_data.begin(), private_data.end())});
  // A peer that has gone already will not miss it.
  rdma_reject(identifier_.get(), said.data(), static_cast<uint8_t>(said.size()));
  identifier_.reset();
}

}  // namespace pnfsrdma::rdma::verbs
