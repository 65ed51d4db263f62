// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "server/mds/admin/job_table.h"
#include "server/mds/meta/namespace.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// Counts what everybody has once more, kInodesPerTurn inodes a turn of the loop, compares it with what is on record,
// and mends what is wrong. A restart ends it with nothing changed that was right. Control loop only.
class QuotaRecounter {
 public:
  static constexpr size_t kInodesPerTurn = 128;
  static constexpr size_t kOwnersPerTurn = 64;

  QuotaRecounter(EventLoop& loop, const Clock& clock, Namespace& names)
      : loop_(loop), clock_(clock), names_(names) {}

  // Behind Quotas::begin_recount(), which this ends. Gives back how to cancel it.
  std::function<void()> start(JobTable::Events events);

 private:
  void next();
  void count(const Result<Quotas::Slice>& slice);
  void mend(const Result<Quotas::Comparison>& comparison);
  void again(const Error& error);
  void end(Result<std::string> outcome);

  EventLoop& loop_;
  const Clock& clock_;
  Namespace& names_;
  JobTable::Events events_;
  QuotaId compared_;  // those in front of it
  size_t wrong_ = 0;
  bool cancelled_ = false;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
