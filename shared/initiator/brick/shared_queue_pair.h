// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "shared/base/clock.h"
#include "shared/base/sync.h"
#include "shared/brick/session_messages.h"
#include "shared/initiator/brick/message_area.h"
#include "shared/initiator/brick/work_batch.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::initiator {

// What a client asks a brick by message. Its id is SharedQueuePair's.
using Request = std::variant<brick::PersistCall, brick::ChangeWordCall, brick::VerifyCall, brick::WatchCall,
                             brick::SignalCall, brick::EventsCall>;

// One queue pair that any number of threads use at once. Thread-safe. There is no thread behind it: of the
// threads that wait, one polls for all; when its own batch is done it hands the role to a sleeper. At queue
// depth 1 the thread that posts is the one that polls: no hand-over, no allocation, one doorbell and one wait
// per batch. Locks taken then: four, uncontended.
//
// Asynchronous batches have an owner instead of a thread that waits: whoever polls tells him. Somebody has to
// call poll() now and then while one is in flight (CompletionPoller).
class SharedQueuePair {
 public:
  // After say_hello(): `area` has its receives posted.
  SharedQueuePair(std::unique_ptr<rdma::QueuePair> queue_pair, std::unique_ptr<MessageArea> area);
  // Nobody is between start() and finish(), and no asynchronous batch is in flight.
  ~SharedQueuePair() = default;

  // Posts all items in order and rings once; finish() returns when all have an outcome and the memory is the
  // caller's again. When `deadline` passes the connection is given up, because that alone gets the memory
  // back. At most items_max() items. A thread may start batches on several queue pairs and then finish them,
  // if all threads take the queue pairs in one order: start() may wait for room that others hold.
  void start(WorkBatch& batch, SteadyTime deadline);
  // The same with a message, whose SEND is the last item. A commit message (at most
  // brick::kPersistRangesPerMessage ranges) covers the WRITEs in front of it, in the same round trip (RC and RFC
  // 5040 place them first). Waits for a credit when kSessionCredits are out.
  void start(WorkBatch& batch, Request call, SteadyTime deadline);
  void finish(WorkBatch& batch, SteadyTime deadline);
  void run(WorkBatch& batch, SteadyTime deadline) {
    start(batch, deadline);
    finish(batch, deadline);
  }
  size_t items_max() const { return depth_ / 2; }

  // Asynchronous batches: never wait. Room for the batch, and for a commit message if there is one. False: there
  // is none just now, or the connection is dead; nothing has happened. Then start_reserved() or cancel(); so
  // a thread may reserve on several queue pairs before it posts anything.
  bool try_reserve(WorkBatch& batch, BatchOwner& owner);
  bool try_reserve(WorkBatch& batch, BatchOwner& owner, Request call);
  void cancel(WorkBatch& batch);
  // Of a reserved batch whose message was not known then, or is not needed after all. `message`: a commit message,
  // which gets its id.
  void set_message(WorkBatch& batch, brick::SessionMessage& message);
  void drop_message(WorkBatch& batch);
  // Posts, and rings now or with ring(). The owner is told when all items have an outcome, possibly before this
  // returns. When `deadline` passes, the next poll() gives the connection up.
  void start_reserved(WorkBatch& batch, SteadyTime deadline, Doorbell doorbell = Doorbell::kNow);
  // For what was posted with Doorbell::kLater; nothing if it has gone out already.
  void ring();
  bool try_start(WorkBatch& batch, BatchOwner& owner, SteadyTime deadline) {
    if (!try_reserve(batch, owner)) return false;
    start_reserved(batch, deadline);
    return true;
  }
  // Posts a call for events, which is answered when there is something to tell: the owner is told then, or of the end
  // of the connection. One at a time; it needs no credit, no room and no deadline. `batch`: one item. False: the
  // connection is dead, and nothing has happened.
  bool park(WorkBatch& batch, BatchOwner& owner, brick::EventsCall call);
  // Takes all completions that are there, unless another thread polls (false): that one takes them. Never blocks.
  // Fails the connection if an asynchronous batch is late, and ends them all when it is dead.
  bool poll(SteadyTime now);
  // Dead, and no asynchronous batch is left, nor can be started.
  bool ended() const;

  // One message and its answer: one round trip. None: the connection was lost.
  template <typename Reply>
  std::optional<Reply> ask(Request call, SteadyTime deadline) {
    WorkItem item;
    WorkBatch batch({&item, 1});
    start(batch, std::move(call), deadline);
    finish(batch, deadline);
    return batch.answer<Reply>();
  }
  std::optional<brick::PersistReply> persist(brick::PersistCall call, SteadyTime deadline) {
    return ask<brick::PersistReply>(std::move(call), deadline);
  }

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

  static void prepare(WorkBatch& batch);
  // The message as the last item, in the send slot of the batch's credit.
  void add_message(WorkBatch& batch, Request call);
  // Room in the send queue for the batch. False: dead or too late.
  bool reserve(WorkBatch& batch, SteadyTime deadline);
  void admit(WorkBatch& batch);
  void post(WorkBatch& batch, Doorbell doorbell = Doorbell::kNow);
  Result<> post_item(const WorkItem& item);
  void wait_until_done(WorkBatch& batch, SteadyTime deadline);
  void poll_for_all(WorkBatch& own, SteadyTime& deadline, Lock& lock);
  // By the thread that polls: until nothing is there, which re-arms fd().
  void take_all(Lock& lock);
  void sleep_until_woken(WorkBatch& batch, SteadyTime& deadline, Lock& lock);
  void dispatch(std::span<const rdma::Completion> completions);
  void complete(WorkItem& item, rdma::Outcome outcome);
  void take_reply(const rdma::Completion& completion);
  void finish_one(WorkBatch& batch);
  // The connection has delivered everything it ever will: what is left of `batch` did not happen as far as we
  // know.
  void settle_dead(WorkBatch& batch);
  // The same for all asynchronous batches.
  void settle_dead();
  void settle_asynchronous(WorkBatch& batch);
  void remove_reply(WorkBatch& batch);
  void link(WorkBatch& batch);
  void unlink(WorkBatch& batch);
  // Their owners hear of the asynchronous batches that are done.
  void tell_owners(Lock& lock);
  // The credit and the receive of its commit message are free again.
  void release_message(WorkBatch& batch);
  std::optional<size_t> take_credit(SteadyTime deadline);
  std::optional<size_t> try_credit();
  void give_credit(size_t slot);

  // Declared first: memory the queue pair may touch outlives it.
  const std::unique_ptr<MessageArea> area_;
  const std::unique_ptr<rdma::QueuePair> queue_pair_;
  const size_t depth_;

  Mutex post_mutex_;     // posting and ringing; taken before mutex_, never inside it
  bool unrung_ = false;  // under post_mutex_
  mutable Mutex mutex_;  // everything below, and the private fields of WorkBatch
  size_t in_flight_ = 0;
  uint64_t answers_ = 0;
  bool polling_ = false;
  bool dead_ = false;
  WorkBatch* sleepers_ = nullptr;
  WorkBatch* replies_ = nullptr;
  uint64_t next_id_ = 1;
  uint32_t credits_taken_ = 0;  // one bit per send slot
  size_t asynchronous_ = 0;     // batches, from try_reserve() until they are done
  bool given_up_ = false;       // because an asynchronous batch was late
  // Those that are posted, in order of their deadlines, nearly; those that are done and whose owners do not know yet.
  WorkBatch* first_ = nullptr;
  WorkBatch* last_ = nullptr;
  WorkBatch* done_ = nullptr;
  WorkBatch* parked_ = nullptr;
  Condition room_;
};

}  // namespace pnfsrdma::initiator
