// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/mds_lease.h"

#include <utility>

namespace pnfsrdma::brick {

MdsLease::MdsLease(EventLoop& loop, Milliseconds lease, std::function<void()> on_expired)
    : loop_(loop), lease_(lease), on_expired_(std::move(on_expired)) {}

MdsLease::~MdsLease() {
  loop_.cancel(timer_);
}

// One clock reading per call of the MDS; the timer is moved only when it fires.
void MdsLease::renew() {
  renewed_ = loop_.now();
  if (running_) return;
  running_ = true;
  timer_ = loop_.after(lease_, [this] { look(); });
}

void MdsLease::look() {
  const auto left = std::chrono::ceil<Milliseconds>(renewed_ + lease_ - loop_.now());
  if (left > Milliseconds(0)) {
    timer_ = loop_.after(left, [this] { look(); });
    return;
  }
  running_ = false;
  on_expired_();
}

}  // namespace pnfsrdma::brick
