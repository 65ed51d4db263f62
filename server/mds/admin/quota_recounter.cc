// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/quota_recounter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/mds/meta/read_then.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

// The store is full, or makes a snapshot.
constexpr Milliseconds kRecountAgain{1000};

}  // namespace

std::function<void()> QuotaRecounter::start(JobTable::Events events) {
  events_ = std::move(events);
  compared_ = {};
  wrong_ = 0;
  cancelled_ = false;
  next();
  return lifetime_.guard([this] { cancelled_ = true; });
}

void QuotaRecounter::next() {
  loop_.post(lifetime_.guard([this] {
    Quotas& quotas = names_.quotas();
    if (cancelled_) return end(fail(ECANCELED, "cancelled"));
    if (!quotas.recounted()) {
      return read_then(
          names_.store(), lifetime_.token(), [&quotas] { return quotas.next_recount_slice(kInodesPerTurn); },
          [this](const Result<Quotas::Slice>& slice) { count(slice); });
    }
    read_then(
        names_.store(), lifetime_.token(),
        [this, &quotas] { return quotas.compare(compared_, kOwnersPerTurn); },
        [this](const Result<Quotas::Comparison>& comparison) { mend(comparison); });
  }));
}

void QuotaRecounter::count(const Result<Quotas::Slice>& slice) {
  if (!slice) return again(slice.error());
  Quotas& quotas = names_.quotas();
  quotas.recount(*slice);
  const auto all = static_cast<double>(std::max<InodeId>(names_.next_inode(), 1));
  events_.on_progress(static_cast<double>(std::min(quotas.recounted_to(), names_.next_inode())) / all,
                      "counting");
  next();
}

void QuotaRecounter::mend(const Result<Quotas::Comparison>& comparison) {
  if (!comparison) return again(comparison.error());
  if (!comparison->wrong.empty()) {
    const auto mended = names_.quotas().mend(comparison->wrong, clock_.wall_now());
    if (!mended) return again(mended.error());
  }
  for (const auto& [id, on_record, counted] : comparison->wrong) {
    log_warning("quotas", "quota-mended kind={} id={} space={} inodes={} were_space={} were_inodes={}",
                to_string(id.kind), id.number, counted.space, counted.inodes, on_record.space.used,
                on_record.inodes.used);
  }
  wrong_ += comparison->wrong.size();
  if (!comparison->next)
    return end(wrong_ == 0 ? "all counts were right" : fmt::format("{} counts were wrong: mended", wrong_));
  compared_ = *comparison->next;
  next();
}

void QuotaRecounter::again(const Error& error) {
  // A row that cannot be read will not be readable in a second.
  if (error.number() != EAGAIN) return end(std::unexpected(error));
  log_warning("quotas", "quota-counting-waits {}", error.to_string());
  loop_.after(kRecountAgain, lifetime_.guard([this] { next(); }));
}

void QuotaRecounter::end(Result<std::string> outcome) {
  names_.quotas().end_recount();
  std::exchange(events_, {}).on_end(std::move(outcome));
}

}  // namespace pnfsrdma::mds
