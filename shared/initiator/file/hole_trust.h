// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/base/clock.h"
#include "shared/initiator/mds.h"

namespace pnfsrdma::initiator {

// Whether a hole may still be believed. Memory answers for itself: a handle that was revoked is dead. A hole
// is answered without asking anybody, so who reads one has to know that nobody can have filled it: the server
// has not said since the hole was asked for that it took state back, and the lease is not over. Thread-safe.
class HoleTrust {
 public:
  HoleTrust(const Mds& mds, const Clock& clock) : mds_(mds), clock_(clock) {}

  // An answer of the server shows revoked state; which, is not known yet.
  void doubt() { era_.fetch_add(1, std::memory_order_acq_rel); }
  // Before a LAYOUTGET is sent.
  uint32_t era() const { return era_.load(std::memory_order_acquire); }
  // A hole that was asked for in that era.
  bool believes(uint32_t era) const { return era == this->era() && clock_.now() < mds_.lease_end(); }

 private:
  const Mds& mds_;
  const Clock& clock_;
  std::atomic<uint32_t> era_ = 1;
};

}  // namespace pnfsrdma::initiator
