// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/base/owned.h"
#include "shared/rdma/iwarp/negotiation.h"
#include "shared/rdma/iwarp/transport.h"

namespace pnfsrdma::rdma::iwarp {

// A peer whose MPA Request has been read and waits for the Reply. Owns its socket until it is answered.
class IwarpConnectionRequest final : public ConnectionRequest {
 public:
  IwarpConnectionRequest(FileDescriptor socket, MpaFrame request, bool crc);
  ~IwarpConnectionRequest() override;

  ByteSpan private_data() const override { return prefix_.private_data; }
  std::string peer() const override { return peer_; }
  Result<std::unique_ptr<QueuePair>> accept(std::shared_ptr<ProtectionDomain> domain, ByteSpan private_data,
                                            const QueuePairLimits& limits) override;
  void reject(ByteSpan private_data) override;

 private:
  FileDescriptor socket_;  // void once answered
  const MpaFrame request_;
  const Prefixed prefix_;
  const bool crc_;
  const std::string peer_;
};

// Sends a whole small frame on a socket whose send buffer is empty. EPIPE when the peer has gone.
Result<> send_frame(int socket, const MpaFrame& frame);

}  // namespace pnfsrdma::rdma::iwarp
