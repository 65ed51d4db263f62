// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shared/base/sync.h"
#include "shared/rdma/transport.h"
#include "shared/rdma/verbs/device.h"
#include "shared/rdma/verbs/event_channel.h"
#include "shared/rdma/verbs/private_data.h"

namespace pnfsrdma::rdma::verbs {

// A peer whose connection request has arrived on our device. Owns its identifier until it is answered.
class VerbsConnectionRequest final : public ConnectionRequest {
 public:
  // `identifier` has been moved to `events`.
  VerbsConnectionRequest(std::shared_ptr<Device> device, ConnectionEvents events, Identifier identifier,
                         const ConnectionEvent& request);
  ~VerbsConnectionRequest() override;

  ByteSpan private_data() const override { return said_.user; }
  std::string peer() const override { return peer_; }
  Result<std::unique_ptr<QueuePair>> accept(std::shared_ptr<ProtectionDomain> domain, ByteSpan private_data,
                                            const QueuePairLimits& limits) override;
  void reject(ByteSpan private_data) override;

 private:
  const std::shared_ptr<Device> device_;
  const PrivateData said_;
  const uint8_t peer_reads_, peer_serves_;  // READs it wants to have in flight, and lets us have
  std::string peer_;
  Mutex mutex_;
  ConnectionEvents events_;
  Identifier identifier_;  // void once answered
};

}  // namespace pnfsrdma::rdma::verbs
