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
// end they own, or it outlives the Burial. Thread-safe.
class Burial {
 public:
  // `name`: of the thread, 15 characters at most.
  explicit Burial(const std::string& name);
  // Returns when all have ended that were let go of. Others that were adopted end in place from now on.
  ~Burial();
  Burial(const Burial&) = delete;
  Burial& operator=(const Burial&) = delete;

  // The object ends in the thread after its last holder has let go of it.
  template <typename T>
  std::shared_ptr<T> adopt(std::unique_ptr<T> owned) {
    return {owned.release(), [dead = std::weak_ptr(dead_)](T* last) { bury(dead.lock(), Body(last)); }};
  }

 private:
  using Body = std::shared_ptr<void>;
  struct Queue {
    std::deque<Body> bodies;
    bool closed = false;
  };
  struct Dead {
    Guarded<Queue> queue;
    Condition wake;
  };

  static void bury(const std::shared_ptr<Dead>& dead, Body body);
  void work();

  const std::shared_ptr<Dead> dead_ = std::make_shared<Dead>();
  Thread thread_;
};

}  // namespace pnfsrdma
