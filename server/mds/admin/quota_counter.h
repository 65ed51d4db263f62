// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/meta/namespace.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// Counts what there was when quotas were switched on, kInodesPerTurn inodes a turn of the loop. A restart goes on.
// Control loop only.
class QuotaCounter {
 public:
  static constexpr size_t kInodesPerTurn = 128;

  QuotaCounter(EventLoop& loop, const Clock& clock, Namespace& names)
      : loop_(loop), clock_(clock), names_(names) {}

  // No effect where it is under way, or nothing is to be counted.
  void start();
  // Of all inodes there are: by their numbers, so it is no steady progress.
  double share() const;

 private:
  void next();
  void count(const Result<Quotas::Slice>& slice);
  void again(const Error& error);

  EventLoop& loop_;
  const Clock& clock_;
  Namespace& names_;
  bool running_ = false;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
