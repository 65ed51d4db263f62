// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/invalidator.h"

#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

void Invalidator::start(fuse_session* session) {
  session_ = session;
  stopping_ = false;
  thread_ = Thread([this] { run(); });
}

void Invalidator::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const Job& job : jobs_) {
    if (job.done) job.done();
  }
  jobs_.clear();
}

void Invalidator::attributes(uint64_t node) {
  std::unique_lock lock(mutex_);
  if (stopping_ || jobs_.size() >= kQueuedMax) return;
  const uint64_t number = ++asked_;
  jobs_.push_back({node, false, number, nullptr});
  changed_.notify_all();
  changed_.wait_for(lock, kPatience, [&] { return stopping_ || done_ >= number; });
}

void Invalidator::pages(uint64_t node, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    // Somebody who waits for it is one of the kernel's requests: their number has a bound already.
    if (!stopping_ && (done || jobs_.size() < kQueuedMax)) {
      jobs_.push_back({node, true, ++asked_, std::move(done)});
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
      changed_.wait(lock);
      continue;
    }
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    // A negative offset: attributes only. ENOENT: the kernel has forgotten the file, so there is nothing to
    // do.
    (void)fuse_lowlevel_notify_inval_inode(session_, job.node, job.with_pages ? 0 : -1, 0);
    if (job.done) job.done();
    lock.lock();
    done_ = job.number;
    changed_.notify_all();
  }
}

}  // namespace pnfsrdma::fuse_client
