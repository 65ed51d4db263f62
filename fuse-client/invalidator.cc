// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/invalidator.h"

#include <memory>

#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

void Invalidator::start(fuse_session* session) {
  // ENOENT: the kernel has forgotten the file, so there is nothing to do.
  start([session](uint64_t node, int64_t offset, int64_t length) {
    (void)fuse_lowlevel_notify_inval_inode(session, node, offset, length);
  });
}

void Invalidator::start(Notify notify) {
  const std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
  stopping_ = false;
}

bool Invalidator::drain(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return jobs_.empty() && busy_ == 0; });
}

void Invalidator::stop() {
  std::vector<Thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  changed_.notify_all();
  for (Thread& thread : threads) thread.join();
  for (const Job& job : jobs_) {
    for (const Done& done : job.done) done();
  }
  jobs_.clear();
  all_pages_.clear();
}

void Invalidator::attributes(uint64_t node) {
  struct State {
    Mutex mutex;
    Condition changed;
    bool done = false;
  };
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || jobs_.size() >= kQueuedMax) return;
  }
  const auto state = std::make_shared<State>();
  add(node, -1, 0, [state] {
    {
      const std::lock_guard lock(state->mutex);
      state->done = true;
    }
    state->changed.notify_all();
  });
  std::unique_lock lock(state->mutex);
  state->changed.wait_for(lock, kPatience, [&] { return state->done; });
}

void Invalidator::pages(uint64_t node, Done done) {
  add(node, 0, 0, std::move(done));
}

void Invalidator::pages(uint64_t node, uint64_t offset, uint64_t length, Done done) {
  add(node, static_cast<int64_t>(offset), static_cast<int64_t>(length), std::move(done));
}

// Somebody who waits for it is one of the kernel's requests: their number has a bound already. For those that
// nobody waits for so has the number of files.
void Invalidator::add(uint64_t node, int64_t offset, int64_t length, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      const bool all = offset == 0 && length == 0;
      const auto waiting = all ? all_pages_.find(node) : all_pages_.end();
      if (waiting != all_pages_.end()) {
        if (done) waiting->second->done.push_back(std::move(done));
        return;
      }
      Job& job = jobs_.emplace_back(Job{node, offset, length, {}});
      if (done) job.done.push_back(std::move(done));
      if (all) all_pages_[node] = &job;
      if (idle_ < jobs_.size() && threads_.size() < kThreadsMax) threads_.emplace_back([this] { run(); });
      changed_.notify_all();
      return;
    }
  }
  if (done) done();
}

void Invalidator::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (jobs_.empty()) {
      ++idle_;
      changed_.wait(lock);
      --idle_;
      continue;
    }
    const bool all = jobs_.front().offset == 0 && jobs_.front().length == 0;
    if (all) all_pages_.erase(jobs_.front().node);
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    ++busy_;
    lock.unlock();
    notify_(job.node, job.offset, job.length);
    for (const Done& done : job.done) done();
    lock.lock();
    if (--busy_ == 0 && jobs_.empty()) changed_.notify_all();
  }
}

}  // namespace pnfsrdma::fuse_client
