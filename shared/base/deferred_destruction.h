// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "shared/base/guarded.h"
#include "shared/base/sync.h"

namespace pnfsrdma {

// Where objects end whose end may take its time, such as connections: nothing moves on them any more, but a
// device may keep a queue pair for long (a minute was seen with Soft-RoCE). They end in one thread, one after
// the other, so that whoever lets go of one last does not wait: a control loop, say. What they touch as they
// end they own, or it outlives the DeferredDestruction. Thread-safe.
class DeferredDestruction {
 public:
  // `name`: of the thread, 15 characters at most.
  explicit DeferredDestruction(const std::string& name);
  // Returns when all have ended that were let go of. Others that were adopted end in place from now on.
  ~DeferredDestruction();
  DeferredDestruction(const DeferredDestruction&) = delete;
  DeferredDestruction& operator=(const DeferredDestruction&) = delete;

  // The object ends in the thread after its last holder has let go of it.
  template <typename T>
  std::shared_ptr<T> adopt(std::unique_ptr<T> owned) {
    return {owned.release(), [state = std::weak_ptr(state_)](T* last) { defer(state.lock(), Object(last)); }};
  }

 private:
  using Object = std::shared_ptr<void>;
  struct Queue {
    std::deque<Object> objects;
    bool closed = false;
  };
  struct State {
    Guarded<Queue> queue;
    Condition wake;
  };

  static void defer(const std::shared_ptr<State>& state, Object object);
  void work();

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  Thread thread_;
};

}  // namespace pnfsrdma
