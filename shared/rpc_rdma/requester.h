// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "shared/rpc_rdma/header.h"
#include "shared/rpc_rdma/message.h"
#include "shared/rpc_rdma/private_data.h"
#include "shared/rpc_rdma/upper_layer.h"
#include "shared/rpc_rdma/wire.h"

namespace pnfsrdma::rpc_rdma {

// The half of an endpoint that calls: chooses how a call travels (RFC 8166, 3.5), gives the peer memory to
// read from and to write to, keeps to the credits, and puts replies together. Memory a peer can reach is
// withdrawn before the reply is handed up. Owned by the Endpoint; not thread-safe.
class Requester {
 public:
  Requester(Wire& wire, Direction direction, Thresholds thresholds, const UpperLayer& upper_layer,
            size_t message_bytes_max);

  // Queues a call. EINVAL: its XID is in use. EMSGSIZE: it cannot travel. ENOBUFS: too many wait.
  Result<> call(Message message);
  // Nobody waits for this reply any more: the call is not sent if it still can be held back.
  void forget(uint32_t xid);
  // Sends what credits and buffers allow. An error: the connection cannot go on.
  Result<> pump();

  // A reply has come; `inlined` is what stood behind its header. The RPC message is appended to `messages`.
  // An error: the peer broke the protocol.
  Result<> reply(const FixedHeader& header, const ChunkLists& lists, ByteSpan inlined,
                 std::vector<Bytes>& messages);
  // RDMA_ERROR for one of our calls: becomes an RPC reply, SYSTEM_ERR.
  void error(const FixedHeader& header, const ErrorBody& error, std::vector<Bytes>& messages);

  size_t waiting_bytes() const { return waiting_bytes_; }
  size_t outstanding() const { return outstanding_.size(); }

 private:
  // Memory the peer fills: of its own, and registered.
  struct Sink {
    std::unique_ptr<std::byte[]> memory;
    size_t size = 0;
    std::unique_ptr<rdma::Region> region;

    ByteSpan first(size_t count) const { return {memory.get(), count}; }
  };
  struct Outstanding {
    Message message;  // the peer may be reading from it
    std::vector<std::unique_ptr<rdma::Region>> sources;
    std::vector<Sink> data;  // one for each chunk of the write list
    std::unique_ptr<Sink> reply;

    void withdraw();
  };

  uint32_t credits_wanted() const { return direction_ == Direction::kForward ? kCredits : kReverseCredits; }
  Result<> start(Message message);
  Result<> provide_for_reply(Outstanding& call, ChunkLists& lists);
  Result<size_t> place_call(Outstanding& call, ChunkLists& lists, Procedure& procedure,
                            MutableByteSpan inlined);
  Result<> expose(Outstanding& call, ChunkLists& lists, uint32_t position, ByteSpan bytes);
  Result<Sink> make_sink(size_t size);
  Result<Bytes> assemble(const Outstanding& call, const ChunkLists& lists, ByteSpan stream) const;

  Wire& wire_;
  const Direction direction_;
  const Thresholds thresholds_;
  const UpperLayer& upper_layer_;
  const size_t message_bytes_max_;
  // RFC 8166, 3.3.1: one call until the first reply has said more.
  uint32_t granted_ = 1;
  std::deque<Message> waiting_;
  size_t waiting_bytes_ = 0;
  std::unordered_map<uint32_t, Outstanding> outstanding_;
};

}  // namespace pnfsrdma::rpc_rdma
