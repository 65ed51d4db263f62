// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/background.h"

#include <utility>

#include "shared/base/sync.h"

namespace pnfsrdma::initiator {

Background::Background() : thread_([this] { run(); }) {}

Background::~Background() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Background::after(Milliseconds delay, Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.emplace(steady_now() + delay, std::move(task));
  }
  changed_.notify_all();
}

bool Background::run_all(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  hurry_ = true;
  changed_.notify_all();
  const bool done = changed_.wait_until(lock, deadline, [&] { return tasks_.empty() && !running_task_; });
  hurry_ = false;
  return done;
}

void Background::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (tasks_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const SteadyTime due = tasks_.begin()->first;
    if (!hurry_ && due > steady_now()) {
      changed_.wait_until(lock, due);
      continue;
    }
    Task task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    running_task_ = true;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    running_task_ = false;
    changed_.notify_all();
  }
}

}  // namespace pnfsrdma::initiator
