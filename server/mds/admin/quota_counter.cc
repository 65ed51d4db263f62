// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/quota_counter.h"

#include "server/mds/meta/read_then.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

// The store is full, or makes a snapshot.
constexpr Milliseconds kAgain{1000};

}  // namespace

void QuotaCounter::start() {
  const Quotas& quotas = names_.quotas();
  if (running_ || !quotas.on() || quotas.counted()) return;
  running_ = true;
  log_info("quotas", "quota-counting from={}", quotas.counted_to());
  next();
}

double QuotaCounter::share() const {
  const Quotas& quotas = names_.quotas();
  if (!quotas.on()) return 0;
  if (quotas.counted()) return 1;
  return static_cast<double>(quotas.counted_to()) /
         static_cast<double>(std::max<InodeId>(names_.next_inode(), 1));
}

void QuotaCounter::next() {
  loop_.post(lifetime_.guard([this] {
    read_then(
        names_.store(), lifetime_.token(), [this] { return names_.quotas().next_slice(kInodesPerTurn); },
        [this](const Result<Quotas::Slice>& slice) { count(slice); });
  }));
}

void QuotaCounter::count(const Result<Quotas::Slice>& slice) {
  if (!slice) return again(slice.error());
  const auto counted = names_.quotas().count(*slice, clock_.wall_now());
  if (!counted) return again(counted.error());
  if (!names_.quotas().counted()) return next();
  running_ = false;
  log_info("quotas", "quota-counted");
}

void QuotaCounter::again(const Error& error) {
  log_warning("quotas", "quota-counting-waits {}", error.to_string());
  loop_.after(kAgain, lifetime_.guard([this] { next(); }));
}

}  // namespace pnfsrdma::mds
