// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/invalidator.h"

#include <utility>

namespace pnfsrdma::fuse_client {

void Invalidator::start(fuse_session* session) {
  // A negative offset: attributes only. ENOENT: the kernel has forgotten the file, so there is nothing to do.
  start([session](uint64_t node, bool with_pages) {
    (void)fuse_lowlevel_notify_inval_inode(session, node, with_pages ? 0 : -1, 0);
  });
}

void Invalidator::start(Notify notify) {
  notify_ = std::move(notify);
  const std::lock_guard lock(mutex_);
  stopping_ = false;
  threads_.emplace_back([this] { run_attributes(); });
}

void Invalidator::stop() {
  std::vector<Thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  changed_.notify_all();
  ready_for_threads_.notify_all();
  for (Thread& thread : threads) thread.join();
  // Nobody else is here: what comes now is done at once.
  for (auto& [node, waiting] : pages_) {
    for (const Done& done : waiting) {
      if (done) done();
    }
  }
  pages_.clear();
  ready_.clear();
  attributes_.clear();
  queued_ = 0;
}

void Invalidator::attributes(uint64_t node) {
  std::unique_lock lock(mutex_);
  if (stopping_ || attributes_.size() >= kQueuedMax) return;
  attributes_.push_back(node);
  const uint64_t number = ++asked_;
  changed_.notify_all();
  changed_.wait_for(lock, kPatience, [&] { return stopping_ || done_ >= number; });
}

void Invalidator::pages(uint64_t node, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    // Somebody who waits for it is one of the kernel's requests: their number has a bound already.
    if (!stopping_ && (done || queued_ < kQueuedMax)) {
      std::deque<Done>& waiting = pages_[node];
      // One that nobody waits for is done by the next one that has not begun.
      if (!done && waiting.size() > 1) return;
      waiting.push_back(std::move(done));
      ++queued_;
      if (waiting.size() > 1) return;  // behind what is under way
      ready_.push_back(node);
      add_thread_if_needed();
      ready_for_threads_.notify_one();
      return;
    }
  }
  if (done) done();
}

void Invalidator::add_thread_if_needed() {
  // The first one has the attributes.
  if (ready_.size() > idle_ && threads_.size() <= kThreadsMax) threads_.emplace_back([this] { run_pages(); });
}

size_t Invalidator::threads() {
  const std::lock_guard lock(mutex_);
  return threads_.size();
}

void Invalidator::run_attributes() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (attributes_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const uint64_t node = attributes_.front();
    attributes_.pop_front();
    lock.unlock();
    notify_(node, false);
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

void Invalidator::run_pages() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (ready_.empty()) {
      ++idle_;
      ready_for_threads_.wait(lock);
      --idle_;
      continue;
    }
    const uint64_t node = ready_.front();
    ready_.pop_front();
    const Done done = std::move(pages_[node].front());
    lock.unlock();
    notify_(node, true);
    if (done) done();
    lock.lock();
    const auto found = pages_.find(node);
    found->second.pop_front();
    --queued_;
    if (found->second.empty()) {
      pages_.erase(found);
    } else {
      ready_.push_back(node);
    }
  }
}

}  // namespace pnfsrdma::fuse_client
