// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "shared/rdma/completion_queue.h"
#include "shared/rdma/counters.h"
#include "shared/rdma/iwarp/frame_batch.h"
#include "shared/rdma/iwarp/placement.h"
#include "shared/rdma/ring.h"
#include "shared/rdma/work_request.h"

namespace pnfsrdma::rdma::iwarp {

// The half of a queue pair that asks: our work requests, from post to completion. Owned by the queue pair,
// which calls it with its mutex held.
//
// Work requests live in one ring, in order of posting, and complete in that order:
//   front … sent | being sent | submitted | only posted … back
// A WRITE or SEND in front of an answered READ or FLUSH has been executed by the peer: an answer completes
// everything up to its request. When WRITEs have gone out with neither behind them, a READ of zero bytes
// follows and proves them.
class Requester {
 public:
  // `limits` as negotiated: read_depth is our ORD.
  Requester(const QueuePairLimits& limits, SoftwareDomain& domain, AtomicCounters& counters,
            CompletionQueue& completions);

  Result<> post_write(uint64_t work_id, std::span<const LocalSlice> source, RemoteSlice target);
  Result<> post_read(uint64_t work_id, LocalSlice sink, RemoteSlice source);
  Result<> post_send(uint64_t work_id, std::span<const LocalSlice> message);
  Result<> post_flush(uint64_t work_id, RemoteSlice target, FlushLevel level);
  Result<> post_atomic_write(uint64_t work_id, uint64_t value, RemoteSlice target);
  // Releases everything posted to the wire.
  void submit() { submitted_ = requests_.size(); }

  // Adds frames of the next message, or what fits of it. kNothing: nothing to send or the read depth is used
  // up; kBadSource: the source of the next work request may not be read, the stream cannot go on.
  enum class Added { kFrames, kNothing, kBadSource };
  Added add_frames(FrameBatch& batch);
  // A message is begun and not finished: no other tagged message may come between.
  bool mid_message() const { return offset_ > 0; }
  // All frames added so far are with the kernel.
  void batch_sent();

  Verdict begin_read_response(const Segment& segment, Placement& placement);
  Verdict end_read_response(const Segment& segment);
  bool mid_read_response() { return !outstanding_.empty() && outstanding_.front().received > 0; }
  Verdict flush_response(const Segment& segment);

  // Ends every work request: the one at fault with `outcome`, what is behind it with kFlushed.
  void end(Outcome outcome);
  // The same when it may be that memory of ours is not, or no longer, registered: then that is what went
  // wrong.
  void end_broken(Outcome otherwise);
  // The same after the peer's Terminate, which may say which request it was.
  void end_terminated(const ReceivedTerminate& terminate);

 private:
  // A READ or FLUSH on the wire, or a READ that only proves WRITEs.
  struct Outstanding {
    enum class Kind : uint8_t { kRead, kFlush, kProof } kind = Kind::kProof;
    uint64_t sequence = 0;  // of its work request; kProof: of the last one it proves
    uint32_t message_sequence = 0;
    uint32_t sink_stag = 0;
    uint64_t sink_offset = 0;
    uint32_t length = 0;
    uint32_t received = 0;
    Placement sink;
  };
  static constexpr uint32_t kProofStag = 1;

  // All but SENDs end with an answer, so they need a read depth.
  Result<> check_post(bool needs_answer) const;
  void posted() { ++posted_; }
  uint64_t front_sequence() const { return posted_ - requests_.size(); }
  uint64_t transmitted_sequence() const { return front_sequence() + transmitted_; }
  Added add_tagged_or_send(FrameBatch& batch, WorkRequest& request);
  Added add_atomic_write(FrameBatch& batch, const WorkRequest& request);
  Added add_request(FrameBatch& batch, WorkRequest& request);
  Added add_proof(FrameBatch& batch);
  Outstanding& begin_outstanding(Outstanding::Kind kind, uint64_t sequence);
  size_t next_payload(const WorkRequest& request, std::span<BoundSlice> pieces, uint32_t count);
  void request_transmitted(const WorkRequest& request);
  void answered();
  void complete_front(Outcome outcome);
  void complete_sends();
  void count(const WorkRequest& request);
  bool find_culprit(const ReceivedTerminate& terminate, uint64_t* sequence);

  const QueuePairLimits limits_;
  SoftwareDomain& domain_;
  AtomicCounters& counters_;
  CompletionQueue& completions_;
  Ring<WorkRequest> requests_;
  uint64_t posted_ = 0;     // sequence number of the next work request
  size_t submitted_ = 0;    // from the front of requests_
  size_t transmitted_ = 0;  // from the front: put into a batch
  uint64_t sent_ = 0;       // sequence: everything below is with the kernel
  // The message being cut into segments.
  uint32_t offset_ = 0;
  uint32_t slice_ = 0;
  uint32_t slice_offset_ = 0;
  std::array<BoundSlice, kGatherMax> pieces_;
  bool unproved_ = false;  // WRITEs were transmitted with no READ or FLUSH behind them
  Ring<Outstanding> outstanding_;
  uint32_t send_message_ = 0;     // MSN of the last SEND
  uint32_t request_message_ = 0;  // MSN of the last READ or FLUSH
  uint32_t flush_response_ = 0;   // MSN of the last flush response
};

}  // namespace pnfsrdma::rdma::iwarp
