// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "server/brickd/committer.h"
#include "server/brickd/executor.h"
#include "server/brickd/flush_gate.h"
#include "server/brickd/pool.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::brick {

// Zeroes free blocks in the background, one at a time in a thread of its own, and only when the zeros are
// durable has the table say "clean". Owned by the Brick; control loop only.
class Zeroer {
 public:
  Zeroer(EventLoop& loop, Pool& pool, FlushGate& gate, Committer& committer);
  ~Zeroer();

  // Looks for work now and whenever something has rested long enough. Call it when blocks were freed.
  void wake();

 private:
  void zero(uint64_t block);
  Result<> zero_durably(MutableByteSpan memory);
  void finish(uint64_t block, const Result<>& result);
  void schedule();

  EventLoop& loop_;
  Pool& pool_;
  FlushGate& gate_;
  Committer& committer_;
  std::atomic<bool> stopping_ = false;
  bool busy_ = false;
  EventLoop::TimerId timer_ = 0;
  Lifetime lifetime_;
  Executor executor_;
};

}  // namespace pnfsrdma::brick
