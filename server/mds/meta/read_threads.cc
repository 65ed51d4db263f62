// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/read_threads.h"

#include <utility>

namespace pnfsrdma::mds {

ReadThreads::ReadThreads(size_t count) {
  for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { serve(); });
}

ReadThreads::~ReadThreads() {
  {
    auto queue = queue_.lock();
    queue->stopping = true;
    queue->waiting.clear();
  }
  wake_.notify_all();
  for (Thread& thread : threads_) thread.join();
}

void ReadThreads::run(std::function<void()> work) {
  queue_.lock()->waiting.push_back(std::move(work));
  wake_.notify_one();
}

void ReadThreads::serve() {
  for (;;) {
    auto queue = queue_.lock();
    queue.wait(wake_, [](const Queue& now) { return now.stopping || !now.waiting.empty(); });
    if (queue->stopping) return;
    const std::function<void()> work = std::move(queue->waiting.front());
    queue->waiting.pop_front();
    queue.unlock();
    work();
  }
}

}  // namespace pnfsrdma::mds
