// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "shared/base/sync.h"
#include "shared/brick/session_codec.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::initiator {

class WorkBatch;

// Whether what is posted goes out at once, or with what is posted behind it (SharedQueuePair::ring()).
enum class Doorbell : uint8_t { kNow, kLater };

// One work request and, later, what became of it. Its address is the work id, so it stays where it is until
// the batch is done.
struct WorkItem {
  rdma::Opcode opcode = rdma::Opcode::kRead;
  rdma::LocalSlice local;
  rdma::RemoteSlice remote;
  rdma::Outcome outcome = rdma::Outcome::kFlushed;
  bool complete = false;
  WorkBatch* batch = nullptr;
};

// Who hears that a batch is done that no thread waits for.
class BatchOwner {
 public:
  // Called once, when all of it is posted and complete, by whichever thread polled or by the one that posted it,
  // with no lock held; it must not wait. The batch is the owner's again, who may reuse it at once.
  virtual void batch_done(WorkBatch& batch) = 0;

 protected:
  ~BatchOwner() = default;
};

// Work requests that go out with one doorbell, on the stack of the thread that waits for them, or in an object
// of their owner that stays where it is: an I/O allocates nothing. Belongs to SharedQueuePair from start() to
// the return of finish(), or from try_reserve() to batch_done(); the fields below are written under its lock.
class WorkBatch {
 public:
  explicit WorkBatch(std::span<WorkItem> items) : items_(items) {}
  WorkBatch(const WorkBatch&) = delete;
  WorkBatch& operator=(const WorkBatch&) = delete;

  std::span<WorkItem> items() const { return items_; }
  bool succeeded() const {
    for (const WorkItem& item : items_) {
      if (item.outcome != rdma::Outcome::kSuccess) return false;
    }
    return true;
  }
  // The answer to its message; none: it had none, or no answer came.
  template <typename Reply>
  std::optional<Reply> answer() const {
    const auto* reply = std::get_if<Reply>(&reply_);
    return reply != nullptr && reply_id_ != 0 && reply->id == reply_id_ ? std::optional(*reply)
                                                                        : std::nullopt;
  }
  std::optional<brick::PersistReply> reply() const { return answer<brick::PersistReply>(); }

 private:
  friend class SharedQueuePair;

  std::span<WorkItem> items_;
  // Items without a completion, and the answer when one is wanted; of an asynchronous batch its start, too.
  size_t remaining_ = 0;
  // The answer to a SEND, recognised by its id and by which message it is (an index of the variant); the send slot of
  // that, until finish().
  bool wants_reply_ = false;
  std::optional<size_t> credit_;
  uint64_t reply_id_ = 0;
  size_t reply_index_ = 0;
  brick::SessionMessage reply_;  // as long as there is none, a call
  std::optional<size_t> receive_slot_;
  // The list of batches whose threads sleep, or that wait for a reply.
  WorkBatch* next_sleeper_ = nullptr;
  WorkBatch* next_reply_ = nullptr;
  Condition wake_;
  // Of a batch that no thread waits for. When it is done it goes from one list to the other.
  BatchOwner* owner_ = nullptr;
  SteadyTime deadline_;
  bool in_list_ = false;
  WorkBatch* next_ = nullptr;
  WorkBatch* previous_ = nullptr;
};

}  // namespace pnfsrdma::initiator
