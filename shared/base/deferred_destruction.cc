// SPDX-License-Identifier: Apache-2.0
#include "shared/base/deferred_destruction.h"

#include <pthread.h>

namespace pnfsrdma {

DeferredDestruction::DeferredDestruction(const std::string& name) : thread_([this] { work(); }) {
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

DeferredDestruction::~DeferredDestruction() {
  state_->queue.lock()->closed = true;
  state_->wake.notify_all();
  thread_.join();
}

// In place, when the thread has ended: `object` still has it then.
void DeferredDestruction::defer(const std::shared_ptr<State>& state, Object object) {
  if (!state) return;
  {
    auto queue = state->queue.lock();
    if (queue->closed) return;
    queue->objects.push_back(std::move(object));
  }
  state->wake.notify_one();
}

void DeferredDestruction::work() {
  for (;;) {
    Object object;
    {
      auto queue = state_->queue.lock();
      queue.wait(state_->wake, [](const Queue& now) { return now.closed || !now.objects.empty(); });
      if (queue->objects.empty()) return;
      object = std::move(queue->objects.front());
      queue->objects.pop_front();
    }
    object.reset();
  }
}

}  // namespace pnfsrdma
