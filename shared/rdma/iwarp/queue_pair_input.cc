// SPDX-License-Identifier: Apache-2.0
// The receiving side of the queue pair: segments as the frame reader cuts them, handed to requester and
// responder.
#include "shared/rdma/iwarp/queue_pair.h"

namespace pnfsrdma::rdma::iwarp {

// A tagged message may be interleaved with untagged ones but not with another tagged one.
Verdict IwarpQueuePair::begin_segment(const Segment& segment, Placement& placement) {
  std::lock_guard lock(mutex_);
  may_send_ = true;
  if (!ready()) return kStreamCatastrophic;
  if (segment.tagged && segment.message == Message::kReadResponse) {
    if (responder_.mid_write()) return kUnexpectedOpcode;
    return requester_.begin_read_response(segment, placement);
  }
  if (segment.tagged && requester_.mid_read_response()) return kUnexpectedOpcode;
  return responder_.begin_segment(segment, placement);
}

Verdict IwarpQueuePair::end_segment(const Segment& segment) {
  std::lock_guard lock(mutex_);
  if (!ready()) return kStreamCatastrophic;
  if (segment.tagged && segment.message == Message::kReadResponse)
    return requester_.end_read_response(segment);
  return responder_.end_segment(segment);
}

Verdict IwarpQueuePair::control_segment(const Segment& segment, ByteSpan payload) {
  Lock lock(mutex_);
  may_send_ = true;
  if (!ready()) return kStreamCatastrophic;
  switch (segment.message) {
    case Message::kReadRequest:
      return responder_.read_request(segment, decode_read_request(payload.data()));
    case Message::kFlushRequest:
      return flush(lock, segment, payload);
    case Message::kFlushResponse:
      if (segment.queue != kFlushResponseQueue) return kUnexpectedOpcode;
      return requester_.flush_response(segment);
    case Message::kTerminate: {
      if (segment.queue != kTerminateQueue) return kUnexpectedOpcode;
      const SenderPause pause(*this, lock);
      requester_.end_terminated(decode_terminate(payload));
      close(lock, Outcome::kFlushed);
      return {};
    }
    default:
      return kUnexpectedOpcode;
  }
}

// The flusher may take its time: others may post and fail() meanwhile, only this connection's input waits.
Verdict IwarpQueuePair::flush(Lock& lock, const Segment& segment, ByteSpan payload) {
  Responder::Flush flush;
  Verdict verdict = responder_.flush_request(segment, decode_flush_request(payload.data()), flush);
  if (verdict) return verdict;
  lock.unlock();
  verdict = responder_.run_flush(flush);
  lock.lock();
  if (!verdict && ready()) responder_.flushed();
  return verdict;
}

}  // namespace pnfsrdma::rdma::iwarp
