// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "shared/rdma/completion_queue.h"
#include "shared/rdma/counters.h"
#include "shared/rdma/transport.h"
#include "shared/rdma/verbs/endpoint.h"

namespace pnfsrdma::rdma::verbs {

// When a work request is to be completed.
enum class Signal : uint8_t { kWithTheBatch, kWithALaterOne };

// The send queue: work requests collected until submit() rings the doorbell once for all of them, and the
// account of what is on its way.
//
// Operations are numbered; a completion names the number and settles every earlier one too, so only some are
// signalled: the last of a batch, every kSignalEvery-th, and large ones, whose completion makes room soon. A
// batch of lazy SENDs needs no signal: each saves its poster a wakeup. They are copied into the work request
// (others are signalled), so no memory waits for a completion that comes late or, when the connection ends
// first, never.
// One operation takes more than one work request when it is longer than the device's messages or gathers more
// slices than it takes.
//
// add_*() and submit() belong to the posting side (one lock), retire() and all_retired()
// to the polling side (another), delivered() to whoever takes completions from the queue.
class SendQueue {
 public:
  SendQueue(Endpoint& endpoint, const QueuePairLimits& limits, AtomicCounters& counters);

  // One operation. ENOBUFS, EINVAL (as QueuePair has them), EOPNOTSUPP (a SEND of more slices than the device
  // gathers). A slice outside the domain's regions, where the device would not look at it, is posted so that
  // it fails in its turn.
  Result<> add_write(uint64_t work_id, std::span<const LocalSlice> source, const RemoteSlice& target);
  Result<> add_read(uint64_t work_id, const LocalSlice& sink, const RemoteSlice& source);
  Result<> add_send(uint64_t work_id, std::span<const LocalSlice> message, Signal signal);
  Result<> add_flush(uint64_t work_id, const RemoteSlice& target, FlushLevel level);
  Result<> add_atomic_write(uint64_t work_id, uint64_t value, const RemoteSlice& target);

  // Rings the doorbell. False when the device refused: the queue pair is of no use any more.
  bool submit();
  // Any thread.
  bool has_unsubmitted() const { return unsubmitted_.load(std::memory_order_acquire); }

  // The operation with this number has ended so, and all earlier ones before it.
  void retire(uint64_t number, ibv_wc_status status, CompletionQueue& completions);
  // Lazy ones at the end do not count: the device has nothing to say of those that ran.
  bool all_retired() const { return retired_ >= signalled_.load(std::memory_order_acquire); }
  // Whatever has not been retired never will be: all of it, also what was not submitted, ends as flushed.
  // Both locks are held.
  void flush_all(CompletionQueue& completions);
  void delivered(size_t count) { delivered_.fetch_add(count, std::memory_order_release); }

 private:
  static constexpr uint32_t kSignalEvery = 16;
  static constexpr uint32_t kLarge = 65536;

  struct Operation {
    uint64_t work_id = 0;
    Opcode opcode = Opcode::kWrite;
    uint32_t length = 0;
    uint32_t work_requests = 0;
  };
  // What ibv_send_wr has no room for.
  struct ExtendedPart {
    RemoteSlice target;
    FlushLevel level = FlushLevel::kPersistent;  // of a FLUSH
    uint64_t value = 0;                          // of an ATOMIC WRITE
  };

  Operation& operation(uint64_t number) { return operations_[number & (operations_.size() - 1)]; }
  Result<> begin(uint64_t work_id, Opcode opcode, uint32_t length, uint32_t work_requests);
  ibv_send_wr& add_work_request(ibv_wr_opcode opcode, uint64_t remote_address, uint32_t key);
  void end_work_request(ibv_send_wr& request, size_t first_slice);
  void signal_last();
  bool inlined(std::span<const LocalSlice> slices, uint32_t length);
  uint32_t pieces_of(std::span<const LocalSlice> slices) const;
  void add_pieces(std::span<const LocalSlice> slices, const RemoteSlice& target);
  bool post_linked();
  bool post_one_by_one();
  static bool post_extended(ibv_qp_ex* queue_pair, const ibv_send_wr& request, const ExtendedPart* part);
  void clear_batch();
  void finish(const Operation& operation, Outcome outcome, CompletionQueue& completions);

  Endpoint& endpoint_;
  AtomicCounters& counters_;
  const uint32_t depth_;
  std::vector<Operation> operations_;  // by number, modulo their count, a power of two

  uint64_t added_ = 0;                   // posting side
  std::atomic<uint64_t> submitted_ = 0;  // written by the posting side
  std::atomic<uint64_t> signalled_ = 0;  // likewise: what the device will tell of
  uint64_t retired_ = 0;                 // polling side
  std::atomic<uint64_t> delivered_ = 0;
  std::atomic<bool> unsubmitted_ = false;
  std::atomic<uint64_t> work_requests_retired_ = 0;
  uint64_t work_requests_added_ = 0;
  uint32_t unsignalled_ = 0;
  const uint32_t signal_every_;
  uint64_t last_signalled_ = 0;  // added up to here

  // The batch. Slices are named by index until it is whole.
  std::vector<ibv_send_wr> batch_;
  std::vector<size_t> batch_slices_;
  std::vector<ibv_sge> slices_;
  std::vector<ExtendedPart> extended_;  // of the batch's FLUSHes and ATOMIC WRITEs, in order
  uint32_t awaited_ = 0;                // of its operations: those that are not lazy
};

}  // namespace pnfsrdma::rdma::verbs
