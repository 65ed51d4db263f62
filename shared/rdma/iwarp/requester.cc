// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/requester.h"

#include <algorithm>
#include <cerrno>

namespace pnfsrdma::rdma::iwarp {

Requester::Requester(const QueuePairLimits& limits, SoftwareDomain& domain, AtomicCounters& counters,
                     CompletionQueue& completions)
    : limits_(limits),
      domain_(domain),
      counters_(counters),
      completions_(completions),
      requests_(limits.send_depth),
      outstanding_(limits.read_depth) {}

Result<> Requester::check_post(bool needs_answer) const {
  if (needs_answer && limits_.read_depth == 0) return fail(EOPNOTSUPP, "the peer accepts no READs");
  if (requests_.size() + completions_.sends() >= limits_.send_depth) {
    return fail(ENOBUFS, "the send queue is full");
  }
  return {};
}

Result<> Requester::post_write(uint64_t work_id, std::span<const LocalSlice> source, RemoteSlice target) {
  TRY_ASSIGN(uint32_t length, gather_length(source));
  TRY(check_remote(target, length));
  TRY(check_post(true));
  WorkRequest& request = requests_.push();
  request.fill(work_id, Opcode::kWrite, target);
  for (const LocalSlice& slice : source) request.bind(domain_, slice, Access::kLocalRead);
  posted();
  return {};
}

Result<> Requester::post_read(uint64_t work_id, LocalSlice sink, RemoteSlice source) {
  TRY(check_remote(source, sink.length));
  TRY(check_post(true));
  WorkRequest& request = requests_.push();
  request.fill(work_id, Opcode::kRead, source);
  request.bind(domain_, sink, Access::kLocalWrite);
  posted();
  return {};
}

Result<> Requester::post_send(uint64_t work_id, std::span<const LocalSlice> message) {
  TRY_ASSIGN(uint32_t length, gather_length(message));
  if (length > limits_.message_size_max) return fail(EMSGSIZE, "longer than the longest message");
  TRY(check_post(false));
  WorkRequest& request = requests_.push();
  request.fill(work_id, Opcode::kSend, {});
  for (const LocalSlice& slice : message) request.bind(domain_, slice, Access::kLocalRead);
  posted();
  return {};
}

Result<> Requester::post_flush(uint64_t work_id, RemoteSlice target, FlushLevel level) {
  if (!limits_.native_flush) return fail(EOPNOTSUPP, "native flush was not agreed on with the peer");
  TRY(check_remote(target, 0));
  TRY(check_post(true));
  WorkRequest& request = requests_.push();
  request.fill(work_id, Opcode::kFlush, target);
  request.level = level;
  posted();
  return {};
}

Result<> Requester::post_atomic_write(uint64_t work_id, uint64_t value, RemoteSlice target) {
  if (!limits_.atomic_write) return fail(EOPNOTSUPP, "atomic write was not agreed on with the peer");
  TRY(check_atomic_write(target));
  TRY(check_post(true));
  requests_.push().fill_atomic_write(work_id, value, target);
  posted();
  return {};
}

Requester::Added Requester::add_frames(FrameBatch& batch) {
  if (transmitted_ == submitted_) return unproved_ ? add_proof(batch) : Added::kNothing;
  WorkRequest& request = requests_[transmitted_];
  if (request.local_protection) {
    // It fails when its turn has come: what is in front of it is proved first.
    if (transmitted_ == 0) return Added::kBadSource;
    return unproved_ ? add_proof(batch) : Added::kNothing;
  }
  if (request.opcode == Opcode::kRead || request.opcode == Opcode::kFlush) return add_request(batch, request);
  if (request.opcode == Opcode::kAtomicWrite) return add_atomic_write(batch, request);
  return add_tagged_or_send(batch, request);
}

// The next `count` bytes of the gather list, as pieces.
size_t Requester::next_payload(const WorkRequest& request, std::span<BoundSlice> pieces, uint32_t count) {
  size_t used = 0;
  while (count > 0) {
    const BoundSlice& slice = request.slices[slice_];
    uint32_t step = std::min(count, slice.length - slice_offset_);
    pieces[used++] = {slice.registration, slice.address + slice_offset_, step};
    count -= step;
    slice_offset_ += step;
    if (slice_offset_ == slice.length) {
      ++slice_;
      slice_offset_ = 0;
    }
  }
  return used;
}

Requester::Added Requester::add_tagged_or_send(FrameBatch& batch, WorkRequest& request) {
  bool write = request.opcode == Opcode::kWrite;
  do {
    if (!batch.has_room()) return Added::kFrames;
    uint32_t payload = std::min(request.length - offset_, kSegmentPayload);
    bool last = offset_ + payload == request.length;
    size_t header = write ? encode_tagged(batch.header(), Message::kWrite, last, request.remote.key,
                                          request.remote.address + offset_, payload)
                          : encode_untagged(batch.header(), Message::kSend, last, kSendQueue,
                                            send_message_ + 1, offset_, payload);
    size_t count = next_payload(request, pieces_, payload);
    bool added = batch.add_frame(header, {pieces_.data(), count});
    for (size_t i = 0; i < count; ++i) pieces_[i].registration.reset();
    if (!added) return Added::kBadSource;
    offset_ += payload;
  } while (offset_ < request.length);
  if (write) {
    unproved_ = true;
  } else {
    ++send_message_;
  }
  offset_ = slice_ = slice_offset_ = 0;
  ++transmitted_;
  return Added::kFrames;
}

// A WRITE of one segment: the peer has agreed to place it by one store. The value goes out behind the header.
Requester::Added Requester::add_atomic_write(FrameBatch& batch, const WorkRequest& request) {
  if (!batch.has_room()) return Added::kNothing;
  const size_t header = encode_tagged(batch.header(), Message::kWrite, true, request.remote.key,
                                      request.remote.address, kAtomicWriteSize);
  std::memcpy(batch.header() + header, &request.value, kAtomicWriteSize);
  batch.add_frame(header + kAtomicWriteSize, {});
  unproved_ = true;
  ++transmitted_;
  return Added::kFrames;
}

Requester::Outstanding& Requester::begin_outstanding(Outstanding::Kind kind, uint64_t sequence) {
  Outstanding& entry = outstanding_.push();
  entry = {};
  entry.kind = kind;
  entry.sequence = sequence;
  entry.message_sequence = ++request_message_;
  unproved_ = false;
  return entry;
}

Requester::Added Requester::add_request(FrameBatch& batch, WorkRequest& request) {
  if (outstanding_.full() || !batch.has_room()) return Added::kNothing;
  bool read = request.opcode == Opcode::kRead;
  Outstanding& entry =
      begin_outstanding(read ? Outstanding::Kind::kRead : Outstanding::Kind::kFlush, transmitted_sequence());
  size_t header;
  if (read) {
    entry.length = request.length;
    if (request.slice_count > 0) {
      entry.sink = {request.slices[0].registration, request.slices[0].address};
      entry.sink_stag = request.slices[0].registration->key();
      entry.sink_offset = reinterpret_cast<uintptr_t>(request.slices[0].address);
    }
    header = encode_read_request(batch.header(), entry.message_sequence,
                                 {.sink_stag = entry.sink_stag,
                                  .sink_offset = entry.sink_offset,
                                  .length = request.length,
                                  .source_stag = request.remote.key,
                                  .source_offset = request.remote.address});
  } else {
    header = encode_flush_request(
        batch.header(), entry.message_sequence,
        {.stag = request.remote.key,
         .length = static_cast<uint32_t>(request.remote.length),
         .offset = request.remote.address,
         .flags = request.level == FlushLevel::kPersistent ? kFlushPersistent : kFlushVisible});
  }
  batch.add_frame(header, {});
  ++transmitted_;
  return Added::kFrames;
}

// A READ of zero bytes: the peer looks at no key and answers it after it has placed every WRITE in front of
// it.
Requester::Added Requester::add_proof(FrameBatch& batch) {
  if (outstanding_.full() || !batch.has_room()) return Added::kNothing;
  Outstanding& entry = begin_outstanding(Outstanding::Kind::kProof, transmitted_sequence() - 1);
  entry.sink_stag = kProofStag;
  size_t header = encode_read_request(batch.header(), entry.message_sequence,
                                      {.sink_stag = kProofStag, .source_stag = kProofStag});
  batch.add_frame(header, {});
  return Added::kFrames;
}

void Requester::batch_sent() {
  sent_ = transmitted_sequence();
  complete_sends();
}

// SENDs complete when the kernel has them, unless something in front of them waits for an answer.
void Requester::complete_sends() {
  while (!requests_.empty() && requests_.front().opcode == Opcode::kSend && front_sequence() < sent_) {
    complete_front(Outcome::kSuccess);
  }
}

void Requester::complete_front(Outcome outcome) {
  WorkRequest& request = requests_.front();
  if (outcome == Outcome::kSuccess) count(request);
  completions_.push(
      {request.work_id, request.opcode, outcome, outcome == Outcome::kSuccess ? request.length : 0});
  request.release();
  requests_.pop();
  if (submitted_ > 0) --submitted_;
  if (transmitted_ > 0) --transmitted_;
}

void Requester::count(const WorkRequest& request) {
  switch (request.opcode) {
    case Opcode::kWrite:
      AtomicCounters::add(counters_.write_bytes, request.length);
      AtomicCounters::add(counters_.write_operations, 1);
      break;
    case Opcode::kRead:
      AtomicCounters::add(counters_.read_bytes, request.length);
      AtomicCounters::add(counters_.read_operations, 1);
      break;
    case Opcode::kSend:
      AtomicCounters::add(counters_.send_operations, 1);
      break;
    case Opcode::kFlush:
      AtomicCounters::add(counters_.flush_operations, 1);
      break;
    case Opcode::kAtomicWrite:
      AtomicCounters::add(counters_.atomic_write_operations, 1);
      break;
    case Opcode::kReceive:
      break;
  }
}

// A Read Response must be exactly the answer to the oldest request: same sink, in order, not a byte more or
// less.
Verdict Requester::begin_read_response(const Segment& segment, Placement& placement) {
  if (outstanding_.empty() || outstanding_.front().kind == Outstanding::Kind::kFlush)
    return kUnexpectedOpcode;
  Outstanding& entry = outstanding_.front();
  if (segment.stag != entry.sink_stag) return kTaggedInvalidStag;
  if (segment.offset != entry.sink_offset + entry.received) return kTaggedBounds;
  if (segment.payload > entry.length - entry.received) return kTaggedBounds;
  bool complete = segment.payload == entry.length - entry.received;
  if (segment.last != complete) return kTaggedBounds;
  if (segment.payload > 0) placement = {entry.sink.registration, entry.sink.address + entry.received};
  return {};
}

Verdict Requester::end_read_response(const Segment& segment) {
  if (outstanding_.empty()) return kUnexpectedOpcode;  // failed meanwhile
  outstanding_.front().received += segment.payload;
  if (segment.last) answered();
  return {};
}

Verdict Requester::flush_response(const Segment& segment) {
  if (outstanding_.empty() || outstanding_.front().kind != Outstanding::Kind::kFlush)
    return kUnexpectedOpcode;
  if (segment.sequence != flush_response_ + 1) return kUntaggedSequence;
  ++flush_response_;
  answered();
  return {};
}

void Requester::answered() {
  uint64_t proved = outstanding_.front().sequence;
  outstanding_.front().sink.registration.reset();
  outstanding_.pop();
  while (!requests_.empty() && front_sequence() <= proved) complete_front(Outcome::kSuccess);
  complete_sends();
}

void Requester::end(Outcome outcome) {
  for (; !requests_.empty(); outcome = Outcome::kFlushed) complete_front(outcome);
  for (; !outstanding_.empty(); outstanding_.pop()) outstanding_.front().sink.registration.reset();
  unproved_ = false;
  offset_ = slice_ = slice_offset_ = 0;
}

void Requester::end_broken(Outcome otherwise) {
  auto bad = [](WorkRequest& request) {
    return request.local_protection ||
           std::any_of(request.slices.begin(), request.slices.begin() + request.slice_count,
                       [](const BoundSlice& slice) { return slice.registration->dead(); });
  };
  size_t first = 0;
  while (first < requests_.size() && !bad(requests_[first])) ++first;
  if (first == requests_.size()) return end(otherwise);
  for (; first > 0; --first) complete_front(Outcome::kFlushed);
  end(Outcome::kLocalProtection);
}

// The work request a Terminate is about, by the header it quotes.
bool Requester::find_culprit(const ReceivedTerminate& terminate, uint64_t* sequence) {
  const Segment& segment = terminate.segment;
  if (!terminate.has_segment) return false;
  if (segment.tagged) {
    for (size_t i = 0; i < std::min(transmitted_ + 1, requests_.size()); ++i) {
      const WorkRequest& request = requests_[i];
      bool inside = segment.offset >= request.remote.address &&
                    segment.offset - request.remote.address <= request.length;
      const bool write = request.opcode == Opcode::kWrite || request.opcode == Opcode::kAtomicWrite;
      if (write && request.remote.key == segment.stag && inside) {
        *sequence = front_sequence() + i;
        return true;
      }
    }
    return false;
  }
  for (size_t i = 0; segment.queue == kRequestQueue && i < outstanding_.size(); ++i) {
    if (outstanding_[i].message_sequence == segment.sequence) {
      *sequence = outstanding_[i].sequence;
      return true;
    }
  }
  return false;
}

void Requester::end_terminated(const ReceivedTerminate& terminate) {
  bool access = (terminate.code.layer == 0 || terminate.code.layer == 1) && terminate.code.type == 1;
  bool operation = terminate.code.layer == 0 && terminate.code.type == 2;
  Outcome outcome = access      ? Outcome::kRemoteAccess
                    : operation ? Outcome::kRemoteOperation
                                : Outcome::kConnectionLost;
  uint64_t culprit = 0;
  if (find_culprit(terminate, &culprit)) {
    // WRITEs and SENDs in front of it were executed, the peer takes segments in order; READs and FLUSHes in
    // front of it were not answered any more.
    bool unanswered = false;
    while (!requests_.empty() && front_sequence() < culprit) {
      Opcode opcode = requests_.front().opcode;
      unanswered = unanswered || opcode == Opcode::kRead || opcode == Opcode::kFlush;
      complete_front(unanswered ? Outcome::kFlushed : Outcome::kSuccess);
    }
  }
  end(outcome);
}

}  // namespace pnfsrdma::rdma::iwarp
