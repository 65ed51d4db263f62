// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/requester.h"

#include <algorithm>
#include <cerrno>

#include "shared/base/log.h"
#include "shared/rpc/message.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::rpc_rdma {
namespace {

// The RPC header of a reply: 24 bytes with a verifier of AUTH_NONE, which is what AUTH_NONE and AUTH_SYS get.
constexpr size_t kReplyHeaderBytes = 64;
constexpr size_t kSegmentBytes = 16;

void append_padded(Bytes& out, ByteSpan bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.resize(out.size() + xdr::padding(bytes.size()));
}

}  // namespace

Requester::Requester(Wire& wire, Direction direction, Thresholds thresholds, const UpperLayer& upper_layer,
                     size_t message_bytes_max)
    : wire_(wire),
      direction_(direction),
      thresholds_(thresholds),
      upper_layer_(upper_layer),
      message_bytes_max_(message_bytes_max) {}

void Requester::Outstanding::withdraw() {
  sources.clear();
  for (Sink& sink : data) sink.region.reset();
  if (reply) reply->region.reset();
}

Result<> Requester::call(Message message) {
  if (outstanding_.contains(message.xid)) return fail(EINVAL, "two calls with one XID");
  if (message.size() > message_bytes_max_) return fail(EMSGSIZE, "a call is longer than allowed");
  // RFC 8167, 5.3: chunks in reverse calls are possible, but peers need not take them.
  if (direction_ == Direction::kReverse && message.size() + kHeaderSizeMin > thresholds_.send) {
    return fail(EMSGSIZE, "a reverse call is longer than the inline threshold");
  }
  if (waiting_.size() >= kQueuedMessagesMax) return fail(ENOBUFS, "too many calls wait for credits");
  waiting_bytes_ += message.size();
  waiting_.push_back(std::move(message));
  return {};
}

void Requester::forget(uint32_t xid) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [xid](const Message& message) { return message.xid == xid; });
  if (found == waiting_.end()) return;
  waiting_bytes_ -= found->size();
  waiting_.erase(found);
}

Result<> Requester::pump() {
  while (!waiting_.empty() && outstanding_.size() < std::min(granted_, credits_wanted()) &&
         wire_.has_room(1, true)) {
    Message message = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= message.size();
    TRY(start(std::move(message)));
  }
  return {};
}

Result<> Requester::start(Message message) {
  const uint32_t xid = message.xid;
  const auto [entry, fresh] = outstanding_.try_emplace(xid);
  if (!fresh) return fail(EINVAL, "two calls with one XID");
  Outstanding& call = entry->second;
  call.message = std::move(message);

  ChunkLists lists;
  if (direction_ == Direction::kForward) TRY(provide_for_reply(call, lists));
  Procedure procedure = Procedure::kMessage;
  const uint32_t buffer = wire_.take_buffer();
  const MutableByteSpan space = wire_.buffer(buffer);
  Bytes head;
  xdr::Encoder encoder(head);
  // The chunks of the call first: they are part of the header that stands in front of what is inline.
  Bytes inlined(thresholds_.send);
  TRY_ASSIGN(const size_t inline_size, place_call(call, lists, procedure, inlined));
  encode(encoder, FixedHeader{xid, kVersion, credits_wanted(), procedure});
  encode(encoder, lists);
  CHECK(head.size() + inline_size <= std::min<size_t>(space.size(), thresholds_.send));
  std::copy(head.begin(), head.end(), space.begin());
  std::copy_n(inlined.begin(), inline_size, space.begin() + static_cast<ptrdiff_t>(head.size()));
  return wire_.post_send(buffer, static_cast<uint32_t>(head.size() + inline_size), nullptr);
}

// Write chunks for data items and a reply chunk for the rest, as far as the reply may not fit inline.
Result<> Requester::provide_for_reply(Outstanding& call, ChunkLists& lists) {
  xdr::StreamBound bound{.stream_bytes = SIZE_MAX, .data_bytes = {}};
  if (upper_layer_.result_bound != nullptr) bound = upper_layer_.result_bound(call.message.body_span());
  bound.stream_bytes = std::min(bound.stream_bytes, message_bytes_max_ - kReplyHeaderBytes);
  size_t whole = bound.stream_bytes;
  for (const uint32_t bytes : bound.data_bytes) whole += bytes + xdr::padding(bytes);
  if (kHeaderSizeMin + kReplyHeaderBytes + whole <= thresholds_.receive) return {};

  size_t header = kHeaderSizeMin;
  const size_t chunks = std::min(bound.data_bytes.size(), kWriteChunksMax);
  for (const uint32_t bytes : std::span(bound.data_bytes).first(chunks)) {
    TRY_ASSIGN(Sink sink, make_sink(std::min<size_t>(bytes, message_bytes_max_)));
    WriteChunk& chunk = lists.writes.emplace_back();
    if (sink.region) {
      const rdma::RemoteSlice remote = sink.region->remote();
      chunk.push_back({remote.key, static_cast<uint32_t>(remote.length), remote.address});
    }
    header += 2 * sizeof(uint32_t) + kSegmentBytes;
    call.data.push_back(std::move(sink));
  }
  for (const uint32_t bytes : std::span(bound.data_bytes).subspan(chunks)) bound.stream_bytes += bytes;
  if (header + kReplyHeaderBytes + bound.stream_bytes <= thresholds_.receive) return {};
  TRY_ASSIGN(Sink sink, make_sink(std::min(bound.stream_bytes + kReplyHeaderBytes, message_bytes_max_)));
  const rdma::RemoteSlice remote = sink.region->remote();
  lists.reply = WriteChunk{{remote.key, static_cast<uint32_t>(remote.length), remote.address}};
  call.reply = std::make_unique<Sink>(std::move(sink));
  return {};
}

Result<Requester::Sink> Requester::make_sink(size_t size) {
  Sink sink;
  if (size == 0) return sink;
  sink.memory = std::make_unique_for_overwrite<std::byte[]>(size);
  sink.size = size;
  TRY_ASSIGN(sink.region, wire_.register_region(MutableByteSpan(sink.memory.get(), size),
                                                rdma::Access::kLocalWrite | rdma::Access::kRemoteWrite));
  return sink;
}

// Inline if it fits; else without its data items, which the peer reads; else all of it is read. Returns how
// many bytes of `inlined` it used.
Result<size_t> Requester::place_call(Outstanding& call, ChunkLists& lists, Procedure& procedure,
                                     MutableByteSpan inlined) {
  const Message& message = call.message;
  const ByteSpan body = message.body_span();
  const size_t room =
      thresholds_.send - std::min<size_t>(thresholds_.send, kFixedHeaderSize + encoded_size(lists));
  std::vector<xdr::DataItem> items;
  size_t size = message.size();
  if (size > room && upper_layer_.argument_items != nullptr) {
    items = upper_layer_.argument_items(body);
    constexpr size_t kReadSegmentBytes = 2 * sizeof(uint32_t) + kSegmentBytes;
    for (const xdr::DataItem& item : items) {
      size -= item.length + xdr::padding(item.length);
      size += kReadSegmentBytes;  // stands in its place
    }
  }
  if (size > room || items.size() > kWriteChunksMax) {
    procedure = Procedure::kNoMessage;
    TRY(expose(call, lists, 0, message.head));
    TRY(expose(call, lists, 0, body));
    return size_t{0};
  }
  size_t used = 0;
  const auto add = [&](ByteSpan bytes) {
    std::copy(bytes.begin(), bytes.end(), inlined.begin() + static_cast<ptrdiff_t>(used));
    used += bytes.size();
  };
  add(message.head);
  size_t done = 0;
  for (const xdr::DataItem& item : items) {
    add(body.subspan(done, item.position - done));
    done = std::min(body.size(), item.position + item.length + xdr::padding(item.length));
    TRY(expose(call, lists, static_cast<uint32_t>(message.head.size() + item.position),
               body.subspan(item.position, item.length)));
  }
  add(body.subspan(done));
  return used;
}

// A segment of the read list.
Result<> Requester::expose(Outstanding& call, ChunkLists& lists, uint32_t position, ByteSpan bytes) {
  if (bytes.empty()) return {};
  // The region gives the right to read only; registration takes no const.
  const MutableByteSpan memory(const_cast<std::byte*>(bytes.data()), bytes.size());
  TRY_ASSIGN(auto region, wire_.register_region(memory, rdma::Access::kRemoteRead));
  const rdma::RemoteSlice remote = region->remote();
  lists.reads.push_back({position, {remote.key, static_cast<uint32_t>(remote.length), remote.address}});
  call.sources.push_back(std::move(region));
  return {};
}

Result<> Requester::reply(const FixedHeader& header, const ChunkLists& lists, ByteSpan inlined,
                          std::vector<Bytes>& messages) {
  auto entry = outstanding_.extract(header.xid);
  if (entry.empty()) return {};  // nobody's: RFC 8166, 4.5.1 has it dropped
  Outstanding& call = entry.mapped();
  call.withdraw();
  granted_ = std::max<uint32_t>(header.credits, 1);
  if (!lists.reads.empty()) return fail(EPROTO, "a reply with a read list");
  ByteSpan stream = inlined;
  if (header.procedure == Procedure::kNoMessage) {
    const uint64_t length = lists.reply ? length_of(*lists.reply) : 0;
    if (!call.reply || !inlined.empty() || length > call.reply->size) {
      return fail(EPROTO, "a reply in a chunk that was not given");
    }
    stream = call.reply->first(length);
  }
  TRY_ASSIGN(Bytes message, assemble(call, lists, stream));
  const auto start = rpc::peek_message(message);
  if (!start || start->type != rpc::MessageType::kReply || start->xid != header.xid) {
    return fail(EPROTO, "a reply with another XID inside");
  }
  messages.push_back(std::move(message));
  return {};
}

// Puts the data items back where they belong in the stream.
Result<Bytes> Requester::assemble(const Outstanding& call, const ChunkLists& lists, ByteSpan stream) const {
  if (lists.writes.empty()) return Bytes(stream.begin(), stream.end());
  if (lists.writes.size() != call.data.size()) return fail(EPROTO, "another write list than was given");
  std::vector<uint32_t> lengths;
  size_t total = 0;
  for (size_t i = 0; i < lists.writes.size(); ++i) {
    const uint64_t length = length_of(lists.writes[i]);
    if (length > call.data[i].size) return fail(EPROTO, "more in a write chunk than it holds");
    lengths.push_back(static_cast<uint32_t>(length));
    total += length;
  }
  if (total == 0) return Bytes(stream.begin(), stream.end());
  xdr::Decoder decoder(stream);
  rpc::ReplyHeader header;
  if (!xdr::decode(decoder, header) || !header.successful() || upper_layer_.restored_items == nullptr) {
    return fail(EPROTO, "data without results");
  }
  const size_t header_size = decoder.position();
  const auto items = upper_layer_.restored_items(decoder.rest(), lengths);
  if (!items) return fail(EPROTO, "results that do not fit their write chunks");
  Bytes message;
  message.reserve(stream.size() + total + 4 * lengths.size());
  size_t taken = 0;
  size_t next = 0;
  for (const xdr::DataItem& item : *items) {
    while (next < lengths.size() && lengths[next] == 0) ++next;
    if (next == lengths.size() || lengths[next] != item.length) return fail(EPROTO, "data of another length");
    const size_t before = header_size + item.position - message.size();
    if (before > stream.size() - taken) return fail(EPROTO, "data behind the end of the results");
    message.insert(message.end(), stream.begin() + static_cast<ptrdiff_t>(taken),
                   stream.begin() + static_cast<ptrdiff_t>(taken + before));
    taken += before;
    append_padded(message, call.data[next++].first(item.length));
  }
  message.insert(message.end(), stream.begin() + static_cast<ptrdiff_t>(taken), stream.end());
  return message;
}

void Requester::error(const FixedHeader& header, const ErrorBody& error, std::vector<Bytes>& messages) {
  auto entry = outstanding_.extract(header.xid);
  if (entry.empty()) return;
  entry.mapped().withdraw();
  granted_ = std::max<uint32_t>(header.credits, 1);
  log_warning("rpc-rdma", "call-refused error={} versions={}..{}",
              error.code == ErrorCode::kVersion ? "ERR_VERS" : "ERR_CHUNK", error.version_low,
              error.version_high);
  messages.push_back(
      xdr::encode_to_bytes(rpc::ReplyHeader::refusal(header.xid, rpc::AcceptStatus::kSystemError)));
}

}  // namespace pnfsrdma::rpc_rdma
