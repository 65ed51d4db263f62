// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <vector>

#include "shared/rdma/completion_queue.h"
#include "shared/rdma/counters.h"
#include "shared/rdma/verbs/endpoint.h"

namespace pnfsrdma::rdma::verbs {

// The receive queue and its account. Completions come in the order of posting. post() belongs to the posting
// side, retire() and flush_all() to the polling side, delivered() to whoever takes completions.
class ReceiveQueue {
 public:
  // In a completion's number: it is of this queue, not of the send queue.
  static constexpr uint64_t kMark = uint64_t{1} << 63;

  ReceiveQueue(Endpoint& endpoint, const QueuePairLimits& limits, AtomicCounters& counters);

  // ENOBUFS, and what ibv_post_recv says.
  Result<> post(uint64_t id, const LocalSlice& buffer);
  // `number` without the mark.
  void retire(uint64_t number, ibv_wc_status status, uint32_t length, CompletionQueue& completions);
  bool all_retired() const { return retired_ == posted_.load(std::memory_order_acquire); }
  void flush_all(CompletionQueue& completions);
  void delivered(size_t count) { delivered_.fetch_add(count, std::memory_order_release); }

 private:
  uint64_t& work_id(uint64_t number) { return work_ids_[number & (work_ids_.size() - 1)]; }

  Endpoint& endpoint_;
  AtomicCounters& counters_;
  const uint32_t depth_;
  std::vector<uint64_t> work_ids_;  // by number, modulo their count, a power of two
  std::atomic<uint64_t> posted_ = 0;
  uint64_t retired_ = 0;
  std::atomic<uint64_t> delivered_ = 0;
};

}  // namespace pnfsrdma::rdma::verbs
