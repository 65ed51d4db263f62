// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/xdr/decoder.h"
#include "shared/xdr/encoder.h"

// The transport header of RPC-over-RDMA version 1 (RFC 8166, 4).
namespace pnfsrdma::rpc_rdma {

inline constexpr uint32_t kVersion = 1;
// XID, version, credits, procedure: every version begins with these.
inline constexpr size_t kFixedHeaderSize = 16;
// With three empty lists: the shortest header of a message.
inline constexpr size_t kHeaderSizeMin = 28;

enum class Procedure : uint32_t { kMessage = 0, kNoMessage = 1, kPadded = 2, kDone = 3, kError = 4 };

// rpcrdma1_segment: memory of the requester's, in its numbering.
struct Segment {
  uint32_t handle = 0;
  uint32_t length = 0;
  uint64_t offset = 0;
  bool operator==(const Segment&) const = default;
};

// A chunk of the write list or the reply chunk: memory to fill from the front. No segment at all: "send it
// inline".
using WriteChunk = std::vector<Segment>;
uint64_t length_of(const WriteChunk& chunk);

// A segment of the read list. Those with one position are one chunk; position 0 is the message itself.
struct ReadSegment {
  uint32_t position = 0;
  Segment target;
  bool operator==(const ReadSegment&) const = default;
};

// rpcrdma1_chunk_lists
struct ChunkLists {
  std::vector<ReadSegment> reads;
  std::vector<WriteChunk> writes;
  std::optional<WriteChunk> reply;
  bool operator==(const ChunkLists&) const = default;
};

struct FixedHeader {
  uint32_t xid = 0;
  uint32_t version = kVersion;
  uint32_t credits = 0;
  Procedure procedure = Procedure::kMessage;  // any number: who decodes it has to look
  bool operator==(const FixedHeader&) const = default;
};

enum class ErrorCode : uint32_t { kVersion = 1, kChunk = 2 };

// What RDMA_ERROR says: the versions its sender speaks, or that it could not use the chunks.
struct ErrorBody {
  ErrorCode code = ErrorCode::kChunk;
  uint32_t version_low = 0, version_high = 0;
  bool operator==(const ErrorBody&) const = default;
};

// False if there are not enough bytes for one.
[[nodiscard]] bool decode_fixed(xdr::Decoder& decoder, FixedHeader& header);
// Behind the fixed header of RDMA_MSG and RDMA_NOMSG. False for malformed lists, and for more segments or
// chunks than limits.h allows.
[[nodiscard]] bool decode_lists(xdr::Decoder& decoder, ChunkLists& lists);
[[nodiscard]] bool decode_error(xdr::Decoder& decoder, ErrorBody& error);

void encode(xdr::Encoder& encoder, const FixedHeader& header);
void encode(xdr::Encoder& encoder, const ChunkLists& lists);
void encode(xdr::Encoder& encoder, const ErrorBody& error);

// Bytes of the lists on the wire.
size_t encoded_size(const ChunkLists& lists);

}  // namespace pnfsrdma::rpc_rdma
