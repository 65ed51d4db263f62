// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/truncater.h"

#include <utility>

namespace pnfsrdma::initiator {

Result<std::optional<nfs4::LayoutReturnArguments>> Truncater::begin(uint64_t new_size) {
  // What is written again meanwhile would make the file longer.
  TRY(file_.mds_writes.enter([this] { return file_.patience.still_wanted("truncate"); }));
  auto prepared = prepare(new_size);
  if (!prepared) file_.mds_writes.leave();
  return prepared;
}

Result<std::optional<nfs4::LayoutReturnArguments>> Truncater::prepare(uint64_t new_size) {
  {
    // The kernel sends one at a time, but does not wait for one that was interrupted.
    std::unique_lock lock(mutex_);
    if (!done_.wait_until(lock, file_.fabric.io_deadline(), [&] { return !turn_; })) {
      return fail(EBUSY, "truncate: another one is in progress");
    }
    turn_.emplace();
  }
  file_.cache.lose_end();
  Turn now{.gate = {new_size, UINT64_MAX - new_size}, .holdings = file_.cache.holdings()};
  now.closed = file_.cache.begin_return(nfs4::IoMode::kAny, now.gate);
  if (!now.closed) {
    // Nothing held beyond: but a size that only we know must not be told after the SETATTR.
    if (Result<> told = committer_.commit_now(); !told) {
      end_turn();
      return std::unexpected(told.error());
    }
    ready(now);
    return std::nullopt;
  }
  const Result<> told = returner_.prepare_return(now.gate, false);
  // The server would put zeros where it knows of nothing.
  if (!told && file_.dirty.grew_before(new_size)) {
    end_turn();
    file_.cache.open_gate(nfs4::IoMode::kAny, now.gate);
    return std::unexpected(told.error());
  }
  const auto stateid = file_.cache.start_return(nfs4::IoMode::kAny, now.gate, file_.fabric.io_deadline());
  now.returning = true;
  now.sent = stateid.value_or(nfs4::Stateid{});
  now.holdings = file_.cache.holdings();
  ready(now);
  if (!stateid) return std::nullopt;
  file_.fabric.statistics.layoutreturns.add();
  return file_return(nfs4::IoMode::kAny, {now.gate.offset, UINT64_MAX}, *stateid);
}

void Truncater::ready(const Turn& turn) {
  {
    std::lock_guard lock(mutex_);
    turn_ = turn;
  }
  file_.dirty.begin_truncation();
}

Truncater::Turn Truncater::end_turn() {
  std::lock_guard lock(mutex_);
  done_.notify_all();
  return std::exchange(turn_, std::nullopt).value_or(Turn{});
}

void Truncater::layout_returned(const nfs4::LayoutReturnResult& result) {
  nfs4::Stateid sent;
  {
    std::lock_guard lock(mutex_);
    if (!turn_ || !std::exchange(turn_->returning, false)) return;
    sent = turn_->sent;
  }
  file_.cache.finish_return(sent, result.stateid);
}

uint64_t Truncater::end(uint64_t new_size, bool done) {
  const Turn was = end_turn();
  file_.cache.lose_end();
  if (done) file_.cache.learn_size(new_size, was.holdings);
  const DirtyList::Cut cut = file_.dirty.end_truncation(done ? std::optional(new_size) : std::nullopt);
  file_.forget_copies(cut.settled);
  // Returned, and not cut after all: what was not told is zeroed.
  if (was.closed && !done) committer_.void_growth();
  if (was.returning) file_.cache.finish_return();
  if (was.closed) file_.cache.open_gate(nfs4::IoMode::kAny, was.gate);
  file_.mds_writes.leave();
  return cut.version;
}

}  // namespace pnfsrdma::initiator
