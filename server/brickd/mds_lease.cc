// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/mds_lease.h"

#include <utility>

namespace pnfsrdma::brick {

namespace {

// A loop that comes this late was kept from running: a stopped process, a paused virtual machine.
constexpr Milliseconds kStall(1000);

}  // namespace

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
  look_after(lease_);
}

void MdsLease::look_after(Milliseconds delay) {
  timer_ = loop_.after(delay, [this, due = loop_.now() + delay] { look(due); });
}

void MdsLease::look(SteadyTime due) {
  const auto left = std::chrono::ceil<Milliseconds>(renewed_ + lease_ - loop_.now());
  if (left > Milliseconds(0)) return look_after(left);
  if (loop_.now() - due >= kStall) return look_after(kStall);
  running_ = false;
  on_expired_();
}

}  // namespace pnfsrdma::brick
