// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "shared/rdma/region.h"
#include "shared/rpc_rdma/header.h"
#include "shared/rpc_rdma/message.h"
#include "shared/rpc_rdma/upper_layer.h"

namespace pnfsrdma::rpc_rdma {

// Bytes of a reply that go by RDMA WRITE: from its RPC header or from its body.
struct ReplyWrite {
  bool from_head = false;
  size_t offset = 0;
  rdma::RemoteSlice target;
};

// How a reply travels. A value.
struct ReplyPlan {
  Procedure procedure = Procedure::kMessage;
  ChunkLists lists;
  std::vector<ReplyWrite> writes;
  std::vector<xdr::DataItem> inline_parts;  // of the body, with RDMA_MSG, behind the RPC header
};

// Data items go to the write chunks, in order; the rest is inline if it fits into `inline_max`, else it goes
// to the reply chunk (RFC 8166, 3.5). Chunks that are not needed are returned with lengths of zero. Nothing
// if the requester has not given enough room.
std::optional<ReplyPlan> plan_reply(const Message& message, const std::vector<WriteChunk>& write_chunks,
                                    const std::optional<WriteChunk>& reply_chunk, size_t inline_max,
                                    const UpperLayer& upper_layer);

}  // namespace pnfsrdma::rpc_rdma
