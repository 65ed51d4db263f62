// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "shared/base/guarded.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

// Threads that wait for the medium in the place of the control loop, in the order in which they are asked.
class ReadThreads {
 public:
  explicit ReadThreads(size_t count);
  // Waits for what has begun; what has not is dropped.
  ~ReadThreads();
  ReadThreads(const ReadThreads&) = delete;
  ReadThreads& operator=(const ReadThreads&) = delete;

  void run(std::function<void()> work);

 private:
  struct Queue {
    std::deque<std::function<void()>> waiting;
    bool stopping = false;
  };
  void serve();

  Guarded<Queue> queue_;
  Condition wake_;
  std::vector<Thread> threads_;
};

}  // namespace pnfsrdma::mds
