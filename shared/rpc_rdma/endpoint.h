// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "shared/rpc_rdma/requester.h"
#include "shared/rpc_rdma/responder.h"

namespace pnfsrdma::rpc_rdma {

// One end of an RPC-over-RDMA connection (RFC 8166, 8167): takes whole RPC messages, gives whole RPC
// messages, calls and replies both ways. Does nothing by itself: its owner calls progress() when fd() of the
// queue pair is readable or its wait() has returned. Not thread-safe, but one thread may be in the queue
// pair's wait() while another is in here.
class Endpoint {
 public:
  enum class Role : uint8_t { kConnecting, kAccepting };

  // `private_data` is what the peer said when it connected or accepted.
  static Result<std::unique_ptr<Endpoint>> make(Role role, std::shared_ptr<rdma::Transport> transport,
                                                std::shared_ptr<rdma::ProtectionDomain> domain,
                                                MessageBuffers buffers,
                                                std::unique_ptr<rdma::QueuePair> queue_pair,
                                                ByteSpan private_data, const UpperLayer& upper_layer,
                                                size_t message_bytes_max = kMessageBytesMax);

  // Queues a call or a reply; flush() sends it. An error refuses this message only; the connection goes on.
  Result<> send(Bytes head, std::shared_ptr<const Bytes> body);
  // Sends what is queued, as far as credits and buffers allow; the rest goes from progress(). An error: the
  // connection has to end.
  Result<> flush();
  void forget_call(uint32_t xid) { responder_.forget(xid); }
  void forget_reply(uint32_t xid) { requester_.forget(xid); }

  // Does all there is to do without waiting. Messages of the peer are appended to `messages`. An error: the
  // connection is lost; what was appended before holds.
  Result<> progress(std::vector<Bytes>& messages);
  // The same for an owner with other work: stops after kPollsPerTurn looks, however much the peer sends.
  // True: there may be more, which no readable fd() will tell.
  Result<bool> progress_a_turn(std::vector<Bytes>& messages);

  // Messages queued and not handed to the queue pair.
  size_t waiting_bytes() const { return requester_.waiting_bytes() + responder_.waiting_bytes(); }
  size_t calls_unanswered() const { return responder_.unanswered(); }
  size_t calls_outstanding() const { return requester_.outstanding(); }
  const Thresholds& thresholds() const { return thresholds_; }
  rdma::QueuePair& queue_pair() { return wire_->queue_pair(); }
  const rdma::Transport& transport() const { return *transport_; }

 private:
  Endpoint(Role role, std::shared_ptr<rdma::Transport> transport, std::unique_ptr<Wire> wire,
           Thresholds thresholds, const UpperLayer& upper_layer, size_t message_bytes_max);
  Result<> received(ByteSpan message, std::vector<Bytes>& messages);
  Result<> received_lists(const FixedHeader& header, xdr::Decoder& decoder, std::vector<Bytes>& messages);

  const Role role_;
  const std::shared_ptr<rdma::Transport> transport_;  // outlives every registration
  const Thresholds thresholds_;
  const UpperLayer upper_layer_;
  Requester requester_;
  Responder responder_;
  // After what the queue pair may still be reading or writing, so that it ends first.
  std::unique_ptr<Wire> wire_;
  std::vector<Wire::Event> events_;
};

// Connects to "host:port" and waits. Errors as rdma::Transport::connect().
Result<std::unique_ptr<Endpoint>> connect(std::shared_ptr<rdma::Transport> transport,
                                          const std::string& address, SteadyTime deadline,
                                          const UpperLayer& upper_layer,
                                          size_t message_bytes_max = kMessageBytesMax);

}  // namespace pnfsrdma::rpc_rdma
