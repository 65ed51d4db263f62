// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/guarded.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/pmem/persistence.h"

namespace pnfsrdma::brick {

// The flushes of one turn at the gate, side by side: an msync waits for a journal commit and a cache flush of
// the disk, and a file system lets those that wait at the same time share them. Which of them Linux tells of a
// failed write-back does not matter, because all succeed or fail as one. Threads begin when they are needed.
class FlushThreads {
 public:
  explicit FlushThreads(pmem::Persistence& persistence) : persistence_(persistence) {}
  ~FlushThreads();
  FlushThreads(const FlushThreads&) = delete;
  FlushThreads& operator=(const FlushThreads&) = delete;

  // Flushes and fences all, in this thread too. The first error. One caller at a time.
  Result<> run(const std::vector<ByteSpan>& ranges);

 private:
  struct Work {
    std::deque<ByteSpan> left;
    size_t running = 0;
    Result<> result;
    bool stopping = false;
  };

  void serve();
  void flush_next(Guarded<Work>::Lock& work);

  pmem::Persistence& persistence_;
  Guarded<Work> work_;
  Condition more_;
  Condition done_;
  std::vector<Thread> threads_;
};

}  // namespace pnfsrdma::brick
