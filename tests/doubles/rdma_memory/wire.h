// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>

#include "shared/base/owned.h"
#include "shared/base/sync.h"
#include "shared/rdma/completion_queue.h"
#include "shared/rdma/counters.h"
#include "shared/rdma/work_request.h"
#include "tests/doubles/rdma_memory/network.h"

namespace pnfsrdma::rdma::memory {

// One end of a connection in memory.
struct End {
  struct Receive {
    uint64_t work_id = 0;
    WorkRequest buffer;  // one slice
  };
  struct Finished {
    Completion completion;
    SteadyTime visible;
  };

  std::shared_ptr<SoftwareDomain> domain;
  QueuePairLimits limits;
  std::string peer;
  FileDescriptor timer;  // readable from the moment the first completion is visible
  std::deque<WorkRequest> posted;
  std::deque<Receive> receives;
  std::deque<Finished> finished;
  bool has_received = false;  // it has posted a receive at some time
  size_t sends_finished = 0;  // of `finished`; the others are receives
  AtomicCounters counters;
};

// A connection: two ends under one mutex. Work requests run in the thread that submits them, one after the
// other, and both ends see the same order: nothing depends on timing. Shared by the two queue pairs.
class Wire {
 public:
  explicit Wire(Faults faults) : faults_(faults) {}

  // Gives end `side` its domain, limits and timer.
  Result<> set_end(size_t side, std::shared_ptr<SoftwareDomain> domain, const QueuePairLimits& limits,
                   std::string peer);
  const End& end(size_t side) const { return ends_[side]; }

  Result<> post(size_t side, WorkRequest request);
  Result<> post_receive(size_t side, uint64_t work_id, LocalSlice buffer);
  void submit(size_t side);
  size_t take(size_t side, std::span<Completion> into);
  // Whether take() would give something now, or never again.
  bool ready(size_t side);
  bool connected() const { return connected_.load(std::memory_order_acquire); }
  void fail() {
    std::lock_guard lock(mutex_);
    disconnect();
  }

 private:
  void run_posted(size_t side);
  Outcome run(End& source, End& target, WorkRequest& request);
  Outcome run_one_sided(End& source, End& target, WorkRequest& request);
  Outcome run_atomic_write(End& source, End& target, const WorkRequest& request);
  Outcome deliver(End& source, End& target, WorkRequest& request);
  void finish(End& end, Completion completion);
  void arm(End& end);
  void disconnect();

  const Faults faults_;
  Mutex mutex_;
  std::array<End, 2> ends_;
  std::atomic<bool> connected_ = true;
  uint64_t operations_ = 0;
};

}  // namespace pnfsrdma::rdma::memory
