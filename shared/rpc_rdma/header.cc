// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/header.h"

#include "shared/rpc_rdma/limits.h"

namespace pnfsrdma::rpc_rdma {
namespace {

// XDR's optional: 0 or 1.
bool decode_present(xdr::Decoder& decoder, bool& present) {
  uint32_t value = 0;
  if (!decoder.get_u32(value)) return false;
  if (value > 1) return decoder.fail(xdr::DecodeError::kBool);
  present = value == 1;
  return true;
}

bool decode_segment(xdr::Decoder& decoder, Segment& segment) {
  return decoder.get_u32(segment.handle) && decoder.get_u32(segment.length) &&
         decoder.get_u64(segment.offset);
}

// `budget`: segments the header may still have.
bool decode_chunk(xdr::Decoder& decoder, WriteChunk& chunk, size_t& budget) {
  uint32_t count = 0;
  if (!decoder.get_count(count, budget)) return false;
  budget -= count;
  chunk.resize(count);
  for (Segment& segment : chunk) {
    if (!decode_segment(decoder, segment)) return false;
  }
  return true;
}

bool decode_reads(xdr::Decoder& decoder, std::vector<ReadSegment>& reads, size_t& budget) {
  for (bool more = false;;) {
    if (!decode_present(decoder, more)) return false;
    if (!more) return true;
    if (budget == 0) return decoder.fail(xdr::DecodeError::kBound);
    --budget;
    ReadSegment& read = reads.emplace_back();
    if (!decoder.get_u32(read.position) || !decode_segment(decoder, read.target)) return false;
  }
}

bool decode_writes(xdr::Decoder& decoder, std::vector<WriteChunk>& writes, size_t& budget) {
  for (bool more = false;;) {
    if (!decode_present(decoder, more)) return false;
    if (!more) return true;
    if (writes.size() >= kWriteChunksMax) return decoder.fail(xdr::DecodeError::kBound);
    if (!decode_chunk(decoder, writes.emplace_back(), budget)) return false;
  }
}

void encode(xdr::Encoder& encoder, const Segment& segment) {
  encoder.put_u32(segment.handle);
  encoder.put_u32(segment.length);
  encoder.put_u64(segment.offset);
}

void encode_chunk(xdr::Encoder& encoder, const WriteChunk& chunk) {
  encoder.put_u32(static_cast<uint32_t>(chunk.size()));
  for (const Segment& segment : chunk) encode(encoder, segment);
}

}  // namespace

uint64_t length_of(const WriteChunk& chunk) {
  uint64_t length = 0;
  for (const Segment& segment : chunk) length += segment.length;
  return length;
}

bool decode_fixed(xdr::Decoder& decoder, FixedHeader& header) {
  uint32_t procedure = 0;
  if (!decoder.get_u32(header.xid) || !decoder.get_u32(header.version) || !decoder.get_u32(header.credits) ||
      !decoder.get_u32(procedure)) {
    return false;
  }
  header.procedure = static_cast<Procedure>(procedure);
  return true;
}

bool decode_lists(xdr::Decoder& decoder, ChunkLists& lists) {
  lists = {};
  size_t budget = kSegmentsMax;
  bool reply = false;
  if (!decode_reads(decoder, lists.reads, budget) || !decode_writes(decoder, lists.writes, budget) ||
      !decode_present(decoder, reply)) {
    return false;
  }
  return !reply || decode_chunk(decoder, lists.reply.emplace(), budget);
}

bool decode_error(xdr::Decoder& decoder, ErrorBody& error) {
  uint32_t code = 0;
  if (!decoder.get_u32(code)) return false;
  error = {static_cast<ErrorCode>(code), 0, 0};
  if (error.code == ErrorCode::kChunk) return true;
  if (error.code != ErrorCode::kVersion) return decoder.fail(xdr::DecodeError::kEnumerator);
  return decoder.get_u32(error.version_low) && decoder.get_u32(error.version_high);
}

void encode(xdr::Encoder& encoder, const FixedHeader& header) {
  encoder.put_u32(header.xid);
  encoder.put_u32(header.version);
  encoder.put_u32(header.credits);
  encoder.put_u32(static_cast<uint32_t>(header.procedure));
}

void encode(xdr::Encoder& encoder, const ChunkLists& lists) {
  for (const ReadSegment& read : lists.reads) {
    encoder.put_u32(1);
    encoder.put_u32(read.position);
    encode(encoder, read.target);
  }
  encoder.put_u32(0);
  for (const WriteChunk& chunk : lists.writes) {
    encoder.put_u32(1);
    encode_chunk(encoder, chunk);
  }
  encoder.put_u32(0);
  encoder.put_u32(lists.reply ? 1 : 0);
  if (lists.reply) encode_chunk(encoder, *lists.reply);
}

void encode(xdr::Encoder& encoder, const ErrorBody& error) {
  encoder.put_u32(static_cast<uint32_t>(error.code));
  if (error.code != ErrorCode::kVersion) return;
  encoder.put_u32(error.version_low);
  encoder.put_u32(error.version_high);
}

size_t encoded_size(const ChunkLists& lists) {
  xdr::Encoder counter = xdr::Encoder::counter();
  encode(counter, lists);
  return counter.position();
}

}  // namespace pnfsrdma::rpc_rdma
