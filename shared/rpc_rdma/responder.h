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

// The half of an endpoint that answers: pulls the chunks of calls by RDMA READ, pushes data and long replies
// by RDMA WRITE in front of the SEND that says so (RFC 8166, 3.5). A call whose chunks cannot be used is
// answered with RDMA_ERROR; a peer that overdraws its credits or uses an XID twice loses the connection.
// Owned by the Endpoint; not thread-safe.
class Responder {
 public:
  Responder(Wire& wire, Direction direction, Thresholds thresholds, const UpperLayer& upper_layer,
            size_t message_bytes_max);

  // A call has come; `inlined` is what stood behind its header. Whole calls are appended to `messages`. An
  // error: the connection has to end.
  Result<> call(const FixedHeader& header, ChunkLists lists, ByteSpan inlined, std::vector<Bytes>& messages);
  // The READs of a call have ended.
  Result<> pulled(uint64_t token, std::vector<Bytes>& messages);
  // Queues the answer to a call. What answers no call is dropped.
  void reply(Message message);
  // The call will not be answered.
  void forget(uint32_t xid) { calls_.erase(xid); }
  // Answers with RDMA_ERROR.
  Result<> refuse(uint32_t xid, ErrorCode code);
  // Pulls and sends what buffers allow.
  Result<> pump();

  size_t waiting_bytes() const { return waiting_bytes_; }
  // Calls that have come and are not answered.
  size_t unanswered() const { return calls_.size(); }

 private:
  struct Piece {
    size_t at = 0;  // in the message
    rdma::RemoteSlice from;
  };
  // A call with a read list, on its way here. Its memory is allocated when its turn has come.
  struct Pull {
    uint32_t xid = 0;
    size_t size = 0;
    std::vector<std::pair<size_t, Bytes>> inlined;  // what came with the header, and where it goes
    std::vector<Piece> pieces;
    Bytes message;
    std::unique_ptr<rdma::Region> region;
  };
  // What is left of a call when its arguments have gone up: where its reply goes.
  struct Call {
    std::vector<WriteChunk> writes;
    std::optional<WriteChunk> reply;
  };
  struct Planned {
    size_t size = 0;
    std::vector<Piece> pieces;
    std::vector<std::pair<size_t, ByteSpan>> inlined;  // where the parts go that are here already
  };

  uint32_t credits() const { return direction_ == Direction::kForward ? kCredits : kReverseCredits; }
  std::optional<Planned> plan(const FixedHeader& header, const ChunkLists& lists, ByteSpan inlined) const;
  Result<> start_pull(std::unique_ptr<Pull> pull);
  Result<> start_reply(const Message& message, const Call& call);

  Wire& wire_;
  const Direction direction_;
  const Thresholds thresholds_;
  const UpperLayer& upper_layer_;
  const size_t message_bytes_max_;
  std::unordered_map<uint32_t, Call> calls_;
  std::deque<std::unique_ptr<Pull>> pulls_waiting_;
  std::unordered_map<uint64_t, std::unique_ptr<Pull>> pulls_;  // by token
  uint64_t next_token_ = 1;
  size_t pull_bytes_ = 0;
  std::deque<Message> replies_;
  size_t waiting_bytes_ = 0;
};

}  // namespace pnfsrdma::rpc_rdma
