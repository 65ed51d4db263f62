// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "shared/base/sync.h"

namespace pnfsrdma::initiator {

// What recalls leave to do (drain, flush, LAYOUTCOMMIT, LAYOUTRETURN), several at once: it may take as long
// as a brick is silent, and the server revokes what is not returned in time. So those of one brick never
// take all threads, and those of one file run one after the other, in their order. Tasks may make wire calls.
// Threads are started when they are first needed. Thread-safe.
class Recaller {
 public:
  using Task = std::function<void()>;
  // Of one file, on these devices (any pointers that tell them apart).
  struct Subject {
    const void* file = nullptr;
    std::vector<const void*> devices;
  };

  // `threads`: 0 runs a task before post() returns.
  explicit Recaller(size_t threads) : threads_max_(threads) {}
  // Runs nothing more; waits for the tasks that run.
  ~Recaller();
  Recaller(const Recaller&) = delete;
  Recaller& operator=(const Recaller&) = delete;

  void post(Subject subject, Task task);

 private:
  struct Job {
    Subject subject;
    Task task;
  };

  void run();
  // The first one that may begin; the end when there is none.
  std::deque<Job>::iterator next();
  // A quarter of the threads: others get through.
  int per_device() const { return static_cast<int>(threads_max_ < 8 ? 1 : threads_max_ / 4); }

  const size_t threads_max_;
  Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  std::deque<Job> waiting_;
  std::map<const void*, int> running_;  // tasks, by file and by device
  size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<Thread> threads_;
};

}  // namespace pnfsrdma::initiator
