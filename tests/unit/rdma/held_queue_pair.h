// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "tests/unit/rdma/wrapped_transport.h"

namespace pnfsrdma::rdma::testing {

// What makes a device keep its queue pairs: whoever destroys one waits. Thread-safe.
class Hold {
 public:
  void keep() {
    asked_ = true;
    asked_.notify_all();
    released_.wait(false);
  }
  // Until somebody waits.
  void wait_until_asked() { asked_.wait(false); }
  void release() {
    released_ = true;
    released_.notify_all();
  }

 private:
  std::atomic<bool> asked_{false}, released_{false};
};

// A queue pair that its device does not give up before `hold` is released.
class HeldQueuePair final : public WrappedQueuePair {
 public:
  HeldQueuePair(std::unique_ptr<QueuePair> inner, std::shared_ptr<Hold> hold)
      : WrappedQueuePair(std::move(inner)), hold_(std::move(hold)) {}
  ~HeldQueuePair() override { hold_->keep(); }

 private:
  std::shared_ptr<Hold> hold_;
};

inline Wrapping held_by(std::shared_ptr<Hold> hold) {
  return [hold](std::unique_ptr<QueuePair> queue_pair) {
    return std::make_unique<HeldQueuePair>(std::move(queue_pair), hold);
  };
}

}  // namespace pnfsrdma::rdma::testing
