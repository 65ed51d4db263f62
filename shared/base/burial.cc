// SPDX-License-Identifier: Apache-2.0
#include "shared/base/burial.h"

#include <pthread.h>

namespace pnfsrdma {

Burial::Burial(const std::string& name) : thread_([this] { work(); }) {
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

Burial::~Burial() {
  dead_->queue.lock()->closed = true;
  dead_->wake.notify_all();
  thread_.join();
}

// In place, when the thread has ended: `body` still has it then.
void Burial::bury(const std::shared_ptr<Dead>& dead, Body body) {
  if (!dead) return;
  {
    auto queue = dead->queue.lock();
    if (queue->closed) return;
    queue->bodies.push_back(std::move(body));
  }
  dead->wake.notify_one();
}

void Burial::work() {
  for (;;) {
    Body body;
    {
      auto queue = dead_->queue.lock();
      queue.wait(dead_->wake, [](const Queue& now) { return now.closed || !now.bodies.empty(); });
      if (queue->bodies.empty()) return;
      body = std::move(queue->bodies.front());
      queue->bodies.pop_front();
    }
    body.reset();
  }
}

}  // namespace pnfsrdma
