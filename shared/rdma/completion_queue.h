// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include "shared/rdma/ring.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma {

// Completions not yet delivered. It has room for every work request that may be posted, because a work
// request keeps its place until its completion is taken. Not thread-safe.
class CompletionQueue {
 public:
  explicit CompletionQueue(const QueuePairLimits& limits) : ring_(limits.send_depth + limits.receive_depth) {}

  void push(Completion completion) {
    ++(completion.opcode == Opcode::kReceive ? receives_ : sends_);
    ring_.push() = completion;
  }
  size_t take(std::span<Completion> into) {
    size_t count = std::min(into.size(), ring_.size());
    for (size_t i = 0; i < count; ++i) {
      into[i] = ring_.front();
      --(into[i].opcode == Opcode::kReceive ? receives_ : sends_);
      ring_.pop();
    }
    return count;
  }
  bool empty() const { return ring_.empty(); }
  size_t sends() const { return sends_; }
  size_t receives() const { return receives_; }

 private:
  Ring<Completion> ring_;
  size_t sends_ = 0;
  size_t receives_ = 0;
};

}  // namespace pnfsrdma::rdma
