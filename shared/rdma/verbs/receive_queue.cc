// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/receive_queue.h"

#include <bit>
#include <cerrno>

#include "shared/rdma/verbs/outcome.h"

namespace pnfsrdma::rdma::verbs {

ReceiveQueue::ReceiveQueue(Endpoint& endpoint, const QueuePairLimits& limits, AtomicCounters& counters)
    : endpoint_(endpoint),
      counters_(counters),
      depth_(limits.receive_depth),
      work_ids_(std::bit_ceil(limits.receive_depth)) {}

Result<> ReceiveQueue::post(uint64_t id, const LocalSlice& buffer) {
  const uint64_t number = posted_.load(std::memory_order_relaxed);
  if (number - delivered_.load(std::memory_order_acquire) >= depth_) {
    return fail(ENOBUFS, "the receive queue is full");
  }
  work_id(number) = id;
  ibv_sge slice{reinterpret_cast<uintptr_t>(buffer.address), buffer.length, buffer.key};
  ibv_recv_wr request{};
  request.wr_id = number | kMark;
  request.sg_list = &slice;
  request.num_sge = buffer.length == 0 ? 0 : 1;
  ibv_recv_wr* refused = nullptr;
  posted_.store(number + 1, std::memory_order_release);
  if (const int code = ibv_post_recv(endpoint_.queue_pair(), &request, &refused); code != 0) {
    posted_.store(number, std::memory_order_release);
    return fail(code, "posting a receive");
  }
  return {};
}

void ReceiveQueue::retire(uint64_t number, ibv_wc_status status, uint32_t length,
                          CompletionQueue& completions) {
  if (number < retired_ || number >= posted_.load(std::memory_order_acquire)) return;
  for (; retired_ < number; ++retired_) {
    completions.push({work_id(retired_), Opcode::kReceive, Outcome::kFlushed, 0});
  }
  const Outcome outcome = outcome_of(status, Opcode::kReceive);
  const bool success = outcome == Outcome::kSuccess;
  completions.push({work_id(number), Opcode::kReceive, outcome, success ? length : 0});
  if (success) AtomicCounters::add(counters_.receive_operations, 1);
  ++retired_;
}

void ReceiveQueue::flush_all(CompletionQueue& completions) {
  const uint64_t posted = posted_.load(std::memory_order_acquire);
  for (; retired_ < posted; ++retired_) {
    completions.push({work_id(retired_), Opcode::kReceive, Outcome::kFlushed, 0});
  }
}

}  // namespace pnfsrdma::rdma::verbs
