// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/responder.h"

#include <algorithm>
#include <cerrno>

namespace pnfsrdma::rdma::iwarp {

Responder::Responder(const QueuePairLimits& limits, uint32_t read_depth, SoftwareDomain& domain,
                     AtomicCounters& counters, CompletionQueue& completions)
    : limits_(limits),
      domain_(domain),
      counters_(counters),
      completions_(completions),
      receives_(limits.receive_depth),
      responses_(read_depth) {}

Result<> Responder::post_receive(uint64_t work_id, LocalSlice buffer) {
  if (receives_.size() + completions_.receives() >= limits_.receive_depth) {
    return fail(ENOBUFS, "the receive queue is full");
  }
  auto registration = domain_.find(buffer.key);
  Receive& receive = receives_.push();
  receive = {work_id, false, {nullptr, buffer.address, buffer.length}};
  if (buffer.length == 0) return {};
  receive.local_protection =
      registration == nullptr || !allows(registration->access(), Access::kLocalWrite) ||
      !registration->covers(reinterpret_cast<uintptr_t>(buffer.address), buffer.length);
  if (!receive.local_protection) receive.buffer.registration = std::move(registration);
  return {};
}

Verdict Responder::begin_segment(const Segment& segment, Placement& placement) {
  switch (segment.message) {
    case Message::kWrite:
      return segment.tagged ? begin_write(segment, placement) : Verdict(kUnexpectedOpcode);
    case Message::kSend:
    case Message::kSendSolicited:
      return segment.tagged ? Verdict(kUnexpectedOpcode) : begin_send(segment, placement);
    // A peer may not take away keys that are ours to give.
    case Message::kSendInvalidate:
    case Message::kSendSolicitedInvalidate:
      return kCannotInvalidate;
    default:
      return kUnexpectedOpcode;
  }
}

// Every segment is checked by itself: the region may have died since the one before.
Verdict Responder::begin_write(const Segment& segment, Placement& placement) {
  if (writing_ && segment.stag != write_stag_) return kTaggedInvalidStag;
  if (writing_ && segment.offset != write_offset_) return kTaggedBounds;
  if (segment.payload > 0) {  // the key of an empty one is not looked at (RFC 5040, 5.2)
    auto registration = domain_.find(segment.stag);
    if (registration == nullptr) return kTaggedInvalidStag;
    if (segment.offset + (segment.payload - 1) < segment.offset) return kTaggedWrap;
    if (!registration->covers(segment.offset, segment.payload)) return kTaggedBounds;
    if (!allows(registration->access(), Access::kRemoteWrite)) return kTaggedInvalidStag;
    placement = {registration, registration->at(segment.offset)};
  }
  writing_ = !segment.last;
  write_stag_ = segment.stag;
  write_offset_ = segment.offset + segment.payload;
  return {};
}

Verdict Responder::begin_send(const Segment& segment, Placement& placement) {
  if (segment.queue != kSendQueue) return kUnexpectedOpcode;
  if (!sending_) {
    if (segment.sequence != send_message_ + 1) return kUntaggedSequence;
    if (segment.message_offset != 0) return kUntaggedOffset;
    if (receives_.empty()) return kUntaggedNoBuffer;
    ++send_message_;
    send_offset_ = 0;
    sending_ = true;
  }
  if (segment.sequence != send_message_) return kUntaggedSequence;
  if (segment.message_offset != send_offset_) return kUntaggedOffset;
  if (receives_.empty()) return kUntaggedNoBuffer;
  Receive& receive = receives_.front();
  if (receive.local_protection) {
    drop_receive(Outcome::kLocalProtection, 0);
    return kUntaggedNoBuffer;
  }
  if (segment.payload > receive.buffer.length - send_offset_) {
    drop_receive(Outcome::kLengthError, 0);
    return kUntaggedTooLong;
  }
  if (segment.payload > 0) placement = {receive.buffer.registration, receive.buffer.address + send_offset_};
  return {};
}

void Responder::drop_receive(Outcome outcome, uint32_t length) {
  Receive& receive = receives_.front();
  completions_.push({receive.work_id, Opcode::kReceive, outcome, length});
  receive.buffer.registration.reset();
  receives_.pop();
}

Verdict Responder::end_segment(const Segment& segment) {
  if (segment.message == Message::kWrite) {
    AtomicCounters::add(counters_.responder_write_bytes, segment.payload);
    if (segment.last) AtomicCounters::add(counters_.responder_write_operations, 1);
    return {};
  }
  if (receives_.empty()) return kUntaggedNoBuffer;  // ended meanwhile
  send_offset_ += segment.payload;
  if (!segment.last) return {};
  sending_ = false;
  AtomicCounters::add(counters_.receive_operations, 1);
  drop_receive(Outcome::kSuccess, send_offset_);
  return {};
}

// What READ and FLUSH requests have in common: their queue, and the depth that was agreed on.
Verdict Responder::check_request(const Segment& segment) {
  if (segment.queue != kRequestQueue) return kUnexpectedOpcode;
  if (segment.sequence != request_message_ + 1) return kUntaggedSequence;
  if (responses_.full()) return kStreamCatastrophic;
  return {};
}

Verdict Responder::read_request(const Segment& segment, const ReadRequest& request) {
  if (Verdict verdict = check_request(segment)) return verdict;
  BoundSlice source;
  if (request.length > 0) {
    auto registration = domain_.find(request.source_stag);
    if (registration == nullptr) return kReadInvalidStag;
    if (request.source_offset + (request.length - 1) < request.source_offset) return kReadWrap;
    if (!registration->covers(request.source_offset, request.length)) return kReadBounds;
    if (!allows(registration->access(), Access::kRemoteRead)) return kReadAccess;
    source = {registration, registration->at(request.source_offset), request.length};
  }
  ++request_message_;
  Response& response = responses_.push();
  response.flush = false;
  response.sink_stag = request.sink_stag;
  response.sink_offset = request.sink_offset;
  response.length = request.length;
  response.sent = 0;
  response.source = std::move(source);
  return {};
}

Verdict Responder::flush_request(const Segment& segment, const FlushRequest& request, Flush& flush) {
  if (!limits_.native_flush) return kUnexpectedOpcode;
  if (Verdict verdict = check_request(segment)) return verdict;
  if (request.flags == 0 || (request.flags & ~(kFlushPersistent | kFlushVisible)) != 0)
    return kRemoteOperationFailed;
  if (request.length > 0) {
    auto registration = domain_.find(request.stag);
    if (registration == nullptr) return kReadInvalidStag;
    if (request.offset + (request.length - 1) < request.offset) return kReadWrap;
    if (!registration->covers(request.offset, request.length)) return kReadBounds;
    if (!allows(registration->access(), Access::kRemoteFlush)) return kReadAccess;
    // Placed bytes are visible already: only persistence needs work.
    if ((request.flags & kFlushPersistent) != 0) {
      flush = {registration, registration->at(request.offset), request.length};
    }
  }
  ++request_message_;
  return {};
}

Verdict Responder::run_flush(const Flush& flush) {
  if (flush.registration == nullptr) return {};
  switch (flush_by_pieces(*flush.registration, {flush.address, flush.length})) {
    case Flushed::kYes:
      return {};
    case Flushed::kRegionDied:
      return kReadInvalidStag;
    case Flushed::kFailed:
      break;
  }
  return kRemoteOperationFailed;
}

void Responder::flushed() {
  Response& response = responses_.push();
  response.flush = true;
  response.length = response.sent = 0;
  response.source = {};
  AtomicCounters::add(counters_.responder_flush_operations, 1);
}

Responder::Added Responder::add_frames(FrameBatch& batch) {
  if (responses_.empty() || !batch.has_room()) return Added::kNothing;
  Response& response = responses_.front();
  if (response.flush) {
    size_t header = encode_untagged(batch.header(), Message::kFlushResponse, true, kFlushResponseQueue,
                                    ++flush_response_, 0, 0);
    batch.add_frame(header, {});
    responses_.pop();
    return Added::kFrames;
  }
  do {
    if (!batch.has_room()) return Added::kFrames;
    uint32_t payload = std::min(response.length - response.sent, kSegmentPayload);
    bool last = response.sent + payload == response.length;
    size_t header = encode_tagged(batch.header(), Message::kReadResponse, last, response.sink_stag,
                                  response.sink_offset + response.sent, payload);
    BoundSlice piece{response.source.registration, response.source.address + response.sent, payload};
    // Others may be writing to what is read here: never checksum it in place.
    if (!batch.add_frame(header, {&piece, 1}, FrameBatch::Carries::kReads)) return Added::kRegionDied;
    response.sent += payload;
    AtomicCounters::add(counters_.responder_read_bytes, payload);
  } while (response.sent < response.length);
  // A READ of nothing only asks whether the WRITEs before it are placed.
  if (response.length > 0) AtomicCounters::add(counters_.responder_read_operations, 1);
  response.source.registration.reset();
  responses_.pop();
  return Added::kFrames;
}

void Responder::end() {
  while (!receives_.empty()) drop_receive(Outcome::kFlushed, 0);
  for (; !responses_.empty(); responses_.pop()) responses_.front().source.registration.reset();
}

}  // namespace pnfsrdma::rdma::iwarp
