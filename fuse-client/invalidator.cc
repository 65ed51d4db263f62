// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/invalidator.h"

namespace pnfsrdma::fuse_client {

void Invalidator::start(fuse_session* session) {
  session_ = session;
  stopping_ = false;
  thread_ = std::thread([this] { run(); });
}

void Invalidator::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Invalidator::attributes(uint64_t node) {
  std::unique_lock lock(mutex_);
  if (stopping_ || jobs_.size() >= kQueuedMax) return;
  const uint64_t number = ++asked_;
  jobs_.push_back({node, false, number});
  changed_.notify_all();
  changed_.wait_for(lock, kPatience, [&] { return stopping_ || done_ >= number; });
}

void Invalidator::pages(uint64_t node) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || jobs_.size() >= kQueuedMax) return;
  jobs_.push_back({node, true, ++asked_});
  changed_.notify_all();
}

void Invalidator::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (jobs_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Job job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    // A negative offset: attributes only. ENOENT: the kernel has forgotten the file, so there is nothing to
    // do.
    (void)fuse_lowlevel_notify_inval_inode(session_, job.node, job.with_pages ? 0 : -1, 0);
    lock.lock();
    done_ = job.number;
    changed_.notify_all();
  }
}

}  // namespace pnfsrdma::fuse_client
