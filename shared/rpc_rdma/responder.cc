// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/responder.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/rpc/message.h"
#include "shared/rpc_rdma/reply_plan.h"
#include "shared/rpc_rdma/segment_cursor.h"
#include "shared/xdr/encoder.h"

namespace pnfsrdma::rpc_rdma {
namespace {

// READs in front of a pull's last one need no answer of their own: they complete in order.
constexpr uint64_t kNoToken = 0;

bool is_call(ByteSpan message, uint32_t xid) {
  const auto start = rpc::peek_message(message);
  return start && start->type == rpc::MessageType::kCall && start->xid == xid;
}

}  // namespace

Responder::Responder(Wire& wire, Direction direction, Thresholds thresholds, const UpperLayer& upper_layer,
                     size_t message_bytes_max)
    : wire_(wire),
      direction_(direction),
      thresholds_(thresholds),
      upper_layer_(upper_layer),
      message_bytes_max_(message_bytes_max) {}

Result<> Responder::call(const FixedHeader& header, ChunkLists lists, ByteSpan inlined,
                         std::vector<Bytes>& messages) {
  if (calls_.size() >= credits()) return fail(EPROTO, "the peer has more calls in flight than credits");
  if (calls_.contains(header.xid)) return fail(EPROTO, "the peer has two calls with one XID");
  // RFC 8167, 5.3: we need not support chunks in reverse calls, and don't.
  const bool chunks = !lists.reads.empty() || !lists.writes.empty() || lists.reply;
  if (direction_ == Direction::kReverse && chunks) return refuse(header.xid, ErrorCode::kChunk);
  auto planned = plan(header, lists, inlined);
  if (!planned) return refuse(header.xid, ErrorCode::kChunk);

  calls_[header.xid] = {std::move(lists.writes), std::move(lists.reply)};
  if (planned->pieces.empty()) {
    Bytes message(inlined.begin(), inlined.end());
    if (!is_call(message, header.xid)) return fail(EPROTO, "a call with another XID inside");
    messages.push_back(std::move(message));
    return {};
  }
  auto pull = std::make_unique<Pull>();
  pull->xid = header.xid;
  pull->size = planned->size;
  pull->pieces = std::move(planned->pieces);
  for (const auto& [at, bytes] : planned->inlined) {
    pull->inlined.emplace_back(at, Bytes(bytes.begin(), bytes.end()));
  }
  pulls_waiting_.push_back(std::move(pull));
  return pump();
}

// Where each part of the message comes from. The stream without the chunks is what is inline or, with
// RDMA_NOMSG, the chunk at position 0; the others go in at their positions, each padded to four bytes.
std::optional<Responder::Planned> Responder::plan(const FixedHeader& header, const ChunkLists& lists,
                                                  ByteSpan inlined) const {
  std::vector<Segment> base;
  size_t next = 0;
  while (next < lists.reads.size() && lists.reads[next].position == 0)
    base.push_back(lists.reads[next++].target);
  const bool whole_in_chunk = header.procedure == Procedure::kNoMessage;
  if (whole_in_chunk == base.empty() || (whole_in_chunk && !inlined.empty())) return std::nullopt;

  uint64_t base_left = whole_in_chunk ? length_of(base) : inlined.size();
  SegmentCursor cursor(base);
  Planned planned;
  // `count` more bytes of the stream.
  const auto take_base = [&](uint64_t count) {
    if (count > base_left || count > message_bytes_max_ - planned.size) return false;
    base_left -= count;
    if (!whole_in_chunk) {
      if (count > 0) planned.inlined.emplace_back(planned.size, inlined.first(count));
      inlined = inlined.subspan(count);
      planned.size += count;
      return true;
    }
    while (const auto slice = cursor.next(count)) {
      planned.pieces.push_back({planned.size, *slice});
      planned.size += slice->length;
      count -= slice->length;
    }
    return count == 0;
  };
  while (next < lists.reads.size()) {
    const uint32_t position = lists.reads[next].position;
    if (position % 4 != 0 || position < planned.size || !take_base(position - planned.size))
      return std::nullopt;
    for (; next < lists.reads.size() && lists.reads[next].position == position; ++next) {
      const Segment& segment = lists.reads[next].target;
      if (segment.length > message_bytes_max_ - planned.size) return std::nullopt;
      if (segment.length > 0) {
        planned.pieces.push_back({planned.size, {segment.offset, segment.length, segment.handle}});
      }
      planned.size += segment.length;
    }
    planned.size += xdr::padding(planned.size);
  }
  if (!take_base(base_left)) return std::nullopt;
  return planned;
}

Result<> Responder::pump() {
  while (!pulls_waiting_.empty()) {
    const Pull& first = *pulls_waiting_.front();
    const bool affordable = pull_bytes_ == 0 || pull_bytes_ + first.size <= kPullBytesMax;
    if (!affordable || !wire_.has_room(first.pieces.size(), false)) break;
    auto pull = std::move(pulls_waiting_.front());
    pulls_waiting_.pop_front();
    TRY(start_pull(std::move(pull)));
  }
  while (!replies_.empty() && wire_.has_room(kWorkRequestsMax, true)) {
    const Message message = std::move(replies_.front());
    replies_.pop_front();
    waiting_bytes_ -= message.size();
    const auto call = calls_.extract(message.xid);
    if (call.empty()) continue;
    TRY(start_reply(message, call.mapped()));
  }
  return {};
}

Result<> Responder::start_pull(std::unique_ptr<Pull> pull) {
  pull->message.resize(pull->size);
  for (const auto& [at, bytes] : std::exchange(pull->inlined, {})) {
    std::copy(bytes.begin(), bytes.end(), pull->message.begin() + static_cast<ptrdiff_t>(at));
  }
  TRY_ASSIGN(pull->region, wire_.register_region(pull->message, rdma::Access::kLocalWrite));
  const uint64_t token = next_token_++;
  for (const Piece& piece : pull->pieces) {
    const auto length = static_cast<uint32_t>(piece.from.length);
    const bool last = &piece == &pull->pieces.back();
    TRY(wire_.post_read(pull->region->slice(piece.at, length), piece.from, last ? token : kNoToken));
  }
  pull_bytes_ += pull->size;
  pulls_.emplace(token, std::move(pull));
  return {};
}

Result<> Responder::pulled(uint64_t token, std::vector<Bytes>& messages) {
  auto entry = pulls_.extract(token);
  if (entry.empty()) return {};
  Pull& pull = *entry.mapped();
  pull.region.reset();
  pull_bytes_ -= pull.size;
  if (!is_call(pull.message, pull.xid)) return fail(EPROTO, "a call with another XID inside");
  messages.push_back(std::move(pull.message));
  return {};
}

void Responder::reply(Message message) {
  if (!calls_.contains(message.xid)) return;
  waiting_bytes_ += message.size();
  replies_.push_back(std::move(message));
}

Result<> Responder::refuse(uint32_t xid, ErrorCode code) {
  // Only a peer that sends rubbish faster than it takes answers can get here.
  if (!wire_.has_room(1, true)) return fail(EPROTO, "too many calls that cannot be used");
  Bytes head;
  xdr::Encoder encoder(head);
  encode(encoder, FixedHeader{xid, kVersion, credits(), Procedure::kError});
  encode(encoder, ErrorBody{code, kVersion, kVersion});
  const uint32_t buffer = wire_.take_buffer();
  std::copy(head.begin(), head.end(), wire_.buffer(buffer).begin());
  return wire_.post_send(buffer, static_cast<uint32_t>(head.size()), nullptr);
}

Result<> Responder::start_reply(const Message& message, const Call& call) {
  // What is kept until the SEND has completed: the body, and the right to read it for the WRITEs.
  struct Source {
    std::shared_ptr<const Bytes> body;
    std::unique_ptr<rdma::Region> region;
  };
  const auto plan = plan_reply(message, call.writes, call.reply, thresholds_.send, upper_layer_);
  if (!plan) return refuse(message.xid, ErrorCode::kChunk);

  auto source = std::make_shared<Source>(message.body, nullptr);
  const ByteSpan body = message.body_span();
  if (!plan->writes.empty() && !body.empty()) {
    // A source of WRITEs is only read; registration takes no const.
    const MutableByteSpan memory(const_cast<std::byte*>(body.data()), body.size());
    TRY_ASSIGN(source->region, wire_.register_region(memory, rdma::Access::kLocalRead));
  }
  const uint32_t buffer = wire_.take_buffer();
  const MutableByteSpan space = wire_.buffer(buffer);
  Bytes head;
  xdr::Encoder encoder(head);
  encode(encoder, FixedHeader{message.xid, kVersion, credits(), plan->procedure});
  encode(encoder, plan->lists);
  std::copy(head.begin(), head.end(), space.begin());
  // The RPC header stands behind: sent with the message, or the source of a WRITE.
  const auto head_at = static_cast<uint32_t>(head.size());
  CHECK(head_at + message.head.size() <= space.size());
  std::copy(message.head.begin(), message.head.end(), space.begin() + head_at);
  for (const ReplyWrite& write : plan->writes) {
    const auto offset = static_cast<uint32_t>(write.offset);
    const auto length = static_cast<uint32_t>(write.target.length);
    const rdma::LocalSlice slice = write.from_head ? wire_.slice(buffer, head_at + offset, length)
                                                   : source->region->slice(write.offset, length);
    TRY(wire_.post_write({&slice, 1}, write.target));
  }
  size_t size = head.size();
  if (plan->procedure == Procedure::kMessage) {
    size += message.head.size();
    for (const xdr::DataItem& part : plan->inline_parts) {
      const ByteSpan bytes = body.subspan(part.position, part.length);
      CHECK(bytes.size() <= space.size() - size);
      std::copy(bytes.begin(), bytes.end(), space.begin() + static_cast<ptrdiff_t>(size));
      size += bytes.size();
    }
  }
  return wire_.post_send(buffer, static_cast<uint32_t>(size), std::move(source));
}

}  // namespace pnfsrdma::rpc_rdma
