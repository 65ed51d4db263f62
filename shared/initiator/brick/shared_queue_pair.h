// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "shared/base/clock.h"
#include "shared/base/sync.h"
#include "shared/brick/session_messages.h"
#include "shared/initiator/brick/message_area.h"
#include "shared/initiator/brick/work_batch.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::initiator {

// One queue pair that any number of threads use at once. Thread-safe. There is no thread behind it: of the
// threads that wait, one polls for all; when its own batch is done it hands the role to a sleeper. At queue
// depth 1 the thread that posts is the one that polls: no hand-over, no allocation, one doorbell and one wait
// per batch. Locks taken then: four, uncontended.
class SharedQueuePair {
 public:
  // After say_hello(): `area` has its receives posted.
  SharedQueuePair(std::unique_ptr<rdma::QueuePair> queue_pair, std::unique_ptr<MessageArea> area);
  // Nobody is between start() and finish().
  ~SharedQueuePair() = default;

  // Posts all items in order and rings once; finish() returns when all have an outcome and the memory is the
  // caller's again. When `deadline` passes the connection is given up, because that alone gets the memory
  // back. At most items_max() items. A thread may start batches on several queue pairs and then finish them,
  // if all threads take the queue pairs in one order: start() may wait for room that others hold.
  void start(WorkBatch& batch, SteadyTime deadline);
  // The same with a commit message (at most brick::kPersistRangesPerMessage ranges), whose SEND is the last
  // item: it covers the WRITEs in front of it, in the same round trip (RC and RFC 5040 place them first).
  // Waits for a credit when kSessionCredits are out.
  void start(WorkBatch& batch, brick::PersistCall call, SteadyTime deadline);
  void finish(WorkBatch& batch, SteadyTime deadline);
  void run(WorkBatch& batch, SteadyTime deadline) {
    start(batch, deadline);
    finish(batch, deadline);
  }
  size_t items_max() const { return depth_ / 2; }

  // One commit message and its answer: one round trip. None: the connection was lost.
  std::optional<brick::PersistReply> persist(brick::PersistCall call, SteadyTime deadline);

  bool connected() const { return queue_pair_->connected(); }
  // Work requests posted and not complete.
  size_t in_flight() const;
  // Who looks twice and finds the same number, with something waiting, knows that nothing was answered
  // between.
  struct Progress {
    bool waiting = false;
    uint64_t answers = 0;
    bool operator==(const Progress&) const = default;
  };
  Progress progress() const;
  void fail() { queue_pair_->fail(); }
  const rdma::QueuePair& queue_pair() const { return *queue_pair_; }

 private:
  using Lock = std::unique_lock<Mutex>;

  // Room in the send queue for the batch. False: dead or too late.
  bool reserve(WorkBatch& batch, SteadyTime deadline);
  void post(WorkBatch& batch);
  Result<> post_item(const WorkItem& item);
  void wait_until_done(WorkBatch& batch, SteadyTime deadline);
  void poll_for_all(WorkBatch& own, SteadyTime& deadline, Lock& lock);
  void sleep_until_woken(WorkBatch& batch, SteadyTime& deadline, Lock& lock);
  void dispatch(std::span<const rdma::Completion> completions);
  void complete(WorkItem& item, rdma::Outcome outcome);
  void take_reply(const rdma::Completion& completion);
  void finish_one(WorkBatch& batch);
  // The connection has delivered everything it ever will: what is left of `batch` did not happen as far as we
  // know.
  void settle_dead(WorkBatch& batch);
  void remove_reply(WorkBatch& batch);
  std::optional<size_t> take_credit(SteadyTime deadline);
  void give_credit(size_t slot);

  // Declared first: memory the queue pair may touch outlives it.
  const std::unique_ptr<MessageArea> area_;
  const std::unique_ptr<rdma::QueuePair> queue_pair_;
  const size_t depth_;

  Mutex post_mutex_;     // posting and ringing; taken before mutex_, never inside it
  mutable Mutex mutex_;  // everything below, and the private fields of WorkBatch
  size_t in_flight_ = 0;
  uint64_t answers_ = 0;
  bool polling_ = false;
  bool dead_ = false;
  WorkBatch* sleepers_ = nullptr;
  WorkBatch* replies_ = nullptr;
  uint64_t next_persist_ = 1;
  uint32_t credits_taken_ = 0;  // one bit per send slot
  Condition room_;
};

}  // namespace pnfsrdma::initiator
