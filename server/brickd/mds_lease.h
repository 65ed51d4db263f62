// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "shared/base/event_loop.h"

namespace pnfsrdma::brick {

// Watches over the MDS that claimed the brick: renewed by each of its calls; silent for one lease, it is
// taken for dead and `on_expired` is called, once until it speaks again. A loop that stood still reads first
// what the MDS said meanwhile. Owned by the Brick; control loop only.
class MdsLease {
 public:
  MdsLease(EventLoop& loop, Milliseconds lease, std::function<void()> on_expired);
  ~MdsLease();
  MdsLease(const MdsLease&) = delete;
  MdsLease& operator=(const MdsLease&) = delete;

  void renew();

 private:
  void look(SteadyTime due);
  void look_after(Milliseconds delay);

  EventLoop& loop_;
  const Milliseconds lease_;
  const std::function<void()> on_expired_;
  SteadyTime renewed_;
  EventLoop::TimerId timer_ = 0;
  bool running_ = false;
};

}  // namespace pnfsrdma::brick
