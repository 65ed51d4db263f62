// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/flush_threads.h"

#include <pthread.h>

#include <algorithm>

#include "server/brickd/limits.h"

namespace pnfsrdma::brick {

FlushThreads::~FlushThreads() {
  work_.lock()->stopping = true;
  more_.notify_all();
  for (Thread& thread : threads_) thread.join();
}

Result<> FlushThreads::run(const std::vector<ByteSpan>& ranges) {
  const size_t helpers = std::min(ranges.size(), kFlushesAtOnce) - 1;
  while (threads_.size() < helpers) {
    threads_.emplace_back([this] { serve(); });
    pthread_setname_np(threads_.back().native_handle(), "brick-flush");
  }
  auto work = work_.lock();
  work->left.assign(ranges.begin(), ranges.end());
  work->result = {};
  for (size_t helper = 0; helper < helpers; ++helper) more_.notify_one();
  while (!work->left.empty()) flush_next(work);
  work.wait(done_, [](const Work& now) { return now.running == 0; });
  return work->result;
}

void FlushThreads::serve() {
  auto work = work_.lock();
  for (;;) {
    work.wait(more_, [](const Work& now) { return now.stopping || !now.left.empty(); });
    if (work->stopping) return;
    flush_next(work);
  }
}

// Once one has failed the others are not begun.
void FlushThreads::flush_next(Guarded<Work>::Lock& work) {
  const ByteSpan range = work->left.front();
  work->left.pop_front();
  ++work->running;
  work.unlock();
  Result<> flushed = persistence_.persist(range);
  work.relock();
  if (!flushed) {
    work->left.clear();
    if (work->result) work->result = std::move(flushed);
  }
  if (--work->running == 0) done_.notify_one();
}

}  // namespace pnfsrdma::brick
