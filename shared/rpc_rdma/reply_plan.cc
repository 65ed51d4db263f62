// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/reply_plan.h"

#include <algorithm>

#include "shared/rpc_rdma/segment_cursor.h"
#include "shared/xdr/encoder.h"

namespace pnfsrdma::rpc_rdma {
namespace {

// `length` bytes from `offset` of the head or the body, to wherever `cursor` stands.
void add_writes(ReplyPlan& plan, SegmentCursor& cursor, bool from_head, size_t offset, size_t length) {
  while (length > 0) {
    const auto slice = cursor.next(length);
    if (!slice) return;  // the caller has compared the lengths
    plan.writes.push_back({from_head, offset, *slice});
    offset += slice->length;
    length -= slice->length;
  }
}

// Data items into their chunks. Returns the parts of the body that remain.
std::optional<std::vector<xdr::DataItem>> place_items(ReplyPlan& plan, const Message& message,
                                                      const std::vector<WriteChunk>& chunks,
                                                      const UpperLayer& upper_layer) {
  const ByteSpan body = message.body_span();
  std::vector<xdr::DataItem> items;
  if (!chunks.empty() && upper_layer.result_items != nullptr) items = upper_layer.result_items(body);
  std::vector<xdr::DataItem> parts;
  size_t done = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const bool used = i < items.size() && items[i].length > 0 && !chunks[i].empty();
    const uint32_t length = used ? items[i].length : 0;
    plan.lists.writes.push_back(filled(chunks[i], length));
    if (!used) continue;
    if (length > length_of(chunks[i])) return std::nullopt;
    SegmentCursor cursor(chunks[i]);
    add_writes(plan, cursor, false, items[i].position, length);
    parts.push_back({done, static_cast<uint32_t>(items[i].position - done)});
    done = std::min(body.size(), items[i].position + length + xdr::padding(length));
  }
  parts.push_back({done, static_cast<uint32_t>(body.size() - done)});
  return parts;
}

}  // namespace

std::optional<ReplyPlan> plan_reply(const Message& message, const std::vector<WriteChunk>& write_chunks,
                                    const std::optional<WriteChunk>& reply_chunk, size_t inline_max,
                                    const UpperLayer& upper_layer) {
  ReplyPlan plan;
  auto parts = place_items(plan, message, write_chunks, upper_layer);
  if (!parts) return std::nullopt;
  size_t stream = message.head.size();
  for (const xdr::DataItem& part : *parts) stream += part.length;
  if (reply_chunk) plan.lists.reply = filled(*reply_chunk, 0);
  const size_t header = kFixedHeaderSize + encoded_size(plan.lists);
  if (header + stream <= inline_max) {
    plan.inline_parts = *std::move(parts);
    return plan;
  }
  // The RPC header stands behind the transport header in the send buffer while the WRITEs take it from there.
  const bool head_fits = header + message.head.size() <= inline_max;
  if (!reply_chunk || stream > length_of(*reply_chunk) || !head_fits) return std::nullopt;
  plan.procedure = Procedure::kNoMessage;
  plan.lists.reply = filled(*reply_chunk, stream);
  SegmentCursor cursor(*reply_chunk);
  add_writes(plan, cursor, true, 0, message.head.size());
  for (const xdr::DataItem& part : *parts) add_writes(plan, cursor, false, part.position, part.length);
  return plan;
}

}  // namespace pnfsrdma::rpc_rdma
