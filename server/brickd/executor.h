// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "shared/base/event_loop.h"
#include "shared/base/guarded.h"
#include "shared/base/lifetime.h"
#include "shared/base/sync.h"

namespace pnfsrdma::brick {

// One thread that does, in order, what would block the control loop. Owned by the Brick; run() belongs to the
// loop's thread. The destructor finishes the running piece, forgets the rest and calls no `done` any more.
class Executor {
 public:
  Executor(EventLoop& loop, const std::string& name);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // `work` in the thread, then `done` in the loop.
  void run(std::function<void()> work, std::function<void()> done);
  size_t unfinished() const { return unfinished_; }

 private:
  // `done` outlives `work` when a job is dropped: it may own what the work uses.
  struct Job {
    std::function<void()> done;
    std::function<void()> work;
  };
  struct Queue {
    std::deque<Job> jobs;
    bool stopping = false;
  };

  void work();
  void finish(std::function<void()> done);

  EventLoop& loop_;
  size_t unfinished_ = 0;  // the loop's thread
  Lifetime lifetime_;
  Guarded<Queue> queue_;
  Condition wake_;
  Thread thread_;
};

}  // namespace pnfsrdma::brick
