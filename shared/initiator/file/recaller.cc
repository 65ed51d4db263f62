// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/recaller.h"

#include <algorithm>
#include <set>
#include <utility>

namespace pnfsrdma::initiator {

Recaller::~Recaller() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (Thread& thread : threads_) thread.join();
}

void Recaller::post(Subject subject, Task task) {
  if (threads_max_ == 0) return task();
  std::lock_guard lock(mutex_);
  waiting_.push_back({std::move(subject), std::move(task)});
  if (waiting_.size() > idle_ && threads_.size() < threads_max_) threads_.emplace_back([this] { run(); });
  changed_.notify_all();
}

std::deque<Recaller::Job>::iterator Recaller::next() {
  std::set<const void*> held_up;  // files
  for (auto job = waiting_.begin(); job != waiting_.end(); ++job) {
    const Subject& subject = job->subject;
    const auto full = [&](const void* device) {
      const auto found = running_.find(device);
      return found != running_.end() && found->second >= per_device();
    };
    if (running_.contains(subject.file) || held_up.contains(subject.file) ||
        std::any_of(subject.devices.begin(), subject.devices.end(), full)) {
      held_up.insert(subject.file);
      continue;
    }
    return job;
  }
  return waiting_.end();
}

void Recaller::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    auto found = waiting_.end();
    changed_.wait(lock, [&] { return stopping_ || (found = next()) != waiting_.end(); });
    --idle_;
    if (stopping_) return;
    Job job = std::move(*found);
    waiting_.erase(found);
    ++running_[job.subject.file];
    for (const void* device : job.subject.devices) ++running_[device];
    lock.unlock();
    job.task();
    job.task = nullptr;
    lock.lock();
    const auto done = [&](const void* what) {
      if (--running_[what] == 0) running_.erase(what);
    };
    done(job.subject.file);
    for (const void* device : job.subject.devices) done(device);
    changed_.notify_all();
  }
}

}  // namespace pnfsrdma::initiator
