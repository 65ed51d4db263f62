// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shared/rdma/completion_queue.h"
#include "shared/rdma/counters.h"
#include "shared/rdma/iwarp/frame_batch.h"
#include "shared/rdma/iwarp/placement.h"
#include "shared/rdma/ring.h"
#include "shared/rdma/work_request.h"

namespace pnfsrdma::rdma::iwarp {

// The half of a queue pair that answers: the peer's WRITEs, SENDs, READs and FLUSHes against our domain.
// Owned by the queue pair, which calls it with its mutex held (but for run_flush()).
class Responder {
 public:
  // `read_depth` is the IRD we told the peer: one request more and the stream ends.
  Responder(const QueuePairLimits& limits, uint32_t read_depth, SoftwareDomain& domain,
            AtomicCounters& counters, CompletionQueue& completions);

  Result<> post_receive(uint64_t work_id, LocalSlice buffer);

  // WRITE and SEND.
  Verdict begin_segment(const Segment& segment, Placement& placement);
  Verdict end_segment(const Segment& segment);
  bool mid_write() const { return writing_; }
  Verdict read_request(const Segment& segment, const ReadRequest& request);
  // Checks a flush request; `flush` is then what to do before flushed().
  struct Flush {
    std::shared_ptr<Registration> registration;  // nullptr: nothing has to be flushed
    std::byte* address = nullptr;
    uint32_t length = 0;
  };
  Verdict flush_request(const Segment& segment, const FlushRequest& request, Flush& flush);
  // Blocks as long as the region's flusher does; called without the queue pair's mutex.
  Verdict run_flush(const Flush& flush);
  void flushed();

  // Adds frames of the next response, or what fits. False when there was nothing to add; kRegionDied: the
  // source of a response begun may not be read any more.
  enum class Added { kFrames, kNothing, kRegionDied };
  Added add_frames(FrameBatch& batch);
  bool mid_message() { return !responses_.empty() && responses_.front().sent > 0; }

  // Ends every posted receive.
  void end();

 private:
  struct Receive {
    uint64_t work_id = 0;
    bool local_protection = false;
    BoundSlice buffer;
  };
  struct Response {
    bool flush = false;
    uint32_t sink_stag = 0;
    uint64_t sink_offset = 0;
    uint32_t length = 0;
    uint32_t sent = 0;
    BoundSlice source;
  };

  Verdict begin_write(const Segment& segment, Placement& placement);
  Verdict begin_send(const Segment& segment, Placement& placement);
  Verdict check_request(const Segment& segment);
  void drop_receive(Outcome outcome, uint32_t length);

  const QueuePairLimits limits_;
  SoftwareDomain& domain_;
  AtomicCounters& counters_;
  CompletionQueue& completions_;
  Ring<Receive> receives_;
  Ring<Response> responses_;

  // A WRITE or SEND whose last segment has not come.
  bool writing_ = false;
  uint32_t write_stag_ = 0;
  uint64_t write_offset_ = 0;
  bool sending_ = false;
  uint32_t send_offset_ = 0;
  uint32_t send_message_ = 0;     // MSN of the last SEND begun
  uint32_t request_message_ = 0;  // MSN of the last READ or FLUSH
  uint32_t flush_response_ = 0;
};

}  // namespace pnfsrdma::rdma::iwarp
