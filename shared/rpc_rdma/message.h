// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "shared/base/bytes.h"

namespace pnfsrdma::rpc_rdma {

// An RPC message on its way out: its RPC header, and arguments or results (null: none).
struct Message {
  uint32_t xid = 0;
  Bytes head;
  std::shared_ptr<const Bytes> body;

  ByteSpan body_span() const { return body ? ByteSpan(*body) : ByteSpan(); }
  size_t size() const { return head.size() + body_span().size(); }
};

// Which way calls go (RFC 8167): forward ones from who connected to who accepted; only they may have chunks.
enum class Direction : uint8_t { kForward, kReverse };

}  // namespace pnfsrdma::rpc_rdma
