// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/flusher.h"

#include <utility>

namespace pnfsrdma::initiator {

bool Flusher::to_be_flushed() {
  std::lock_guard lock(mutex_);
  return flushing_ || file_.dirty.anything_unflushed();
}

Result<> Flusher::flush(bool through_gate) {
  std::unique_lock lock(mutex_);
  // Whoever comes meanwhile waits: what it wrote may be in the hands of that flush, which ends as calls do.
  // If it found its brick silent, they need not find that out one after the other.
  const uint64_t silent_before = silent_flushes_;
  while (flushing_) {
    TRY(file_.patience.still_wanted("flush"));
    // That one may wait for a WRITE or truncation, and that for this recall. What went through the MDS needs no
    // layout.
    if (through_gate && sending_again_)
      return fail(EAGAIN, "flush: data that the server has lost is being rewritten");
    flushed_.wait_for(lock, std::chrono::seconds(1));
    if (silent_flushes_ != silent_before) return fail(kBrickSilent, "the brick does not answer");
  }
  if (!file_.dirty.anything_unflushed()) return {};
  flushing_ = true;
  lock.unlock();
  Result<> outcome = flush_claimed(through_gate);
  lock.lock();
  flushing_ = false;
  if (!outcome && outcome.error().number() == kBrickSilent) ++silent_flushes_;
  flushed_.notify_all();
  return outcome;
}

Result<> Flusher::flush_claimed(bool through_gate) {
  for (int turn = 0; turn < kRestorationsMax; ++turn) {
    // What is held is under no layout.
    const Flush flush = file_.dirty.begin_flush(!through_gate);
    bool sent_again = false;
    const Result<> outcome = flush_all(flush, through_gate, sent_again);
    const bool whole = file_.dirty.end_flush(flush, outcome.has_value() && !sent_again);
    if (!outcome || (whole && !sent_again)) return outcome;
  }
  return fail(EIO, "unflushed writes are lost repeatedly");
}

void Flusher::set_sending_again(bool sending) {
  std::lock_guard lock(mutex_);
  sending_again_ = sending;
  flushed_.notify_all();
}

void Flusher::flush_beside() {
  if (posted_.exchange(true)) return;
  closing_.post([this, alive = file_.shared_from_this()] {
    posted_ = false;
    // An error comes up again where the application asks for it.
    (void)flush(false);
  });
}

void Flusher::flush_if_old() {
  if (!std::exchange(was_unflushed_, file_.dirty.anything_unflushed()) || !was_unflushed_) return;
  if (file_.dirty.unflushed_on_resting_device()) return;
  // What went wrong is said to the next fsync, which finds it again.
  if (flush(false) && file_.dirty.grew()) (void)committer_.commit_now();
}

Result<> Flusher::flush_all(const Flush& flush, bool through_gate, bool& sent_again) {
  if (!flush.held.empty()) {
    TRY(send_held(flush));
    sent_again = true;
  }
  const Result<> by_rdma = flush.by_rdma.empty() ? Result<>() : bricks_.flush(flush, through_gate);
  const Result<> by_mds = flush.by_mds.empty() ? Result<>() : flush_mds(flush, through_gate, sent_again);
  return by_rdma ? by_mds : by_rdma;
}

// Some of it may have to be committed.
Result<> Flusher::send_held(const Flush& flush) {
  set_sending_again(true);
  const Result<> outcome = restorer_.send_held(flush.held.ranges());
  set_sending_again(false);
  return outcome;
}

Result<> Flusher::flush_mds(const Flush& flush, bool through_gate, bool& sent_again) {
  const uint64_t session = file_.layouts.session;
  TRY_ASSIGN(const WriteVerifier verifier, through_mds_.commit(flush.by_mds.ranges()));
  const DirtyList::Gone gone = file_.dirty.gone_from_mds(flush, verifier);
  if (gone.lost) file_.fabric.statistics.lost_writes.add();
  if (gone.copied.empty()) {
    file_.unstable_session = session;
    return {};
  }
  sent_again = true;
  if (through_gate) return fail(EAGAIN, "flush: the server has lost uncommitted writes");
  set_sending_again(true);
  const Result<> outcome = restorer_.send_again(gone.copied);
  set_sending_again(false);
  return outcome;
}

Result<> Flusher::settle_doubt() {
  const Result<> outcome = file_.patience.as_mounted([this] {
    Result<> flushed = flush(false);
    return file_.unstable_in_doubt() ? flushed : Result<>();
  });
  // What else there is to say of the flush is fsync's.
  if (!outcome && !is_answer(outcome.error())) return outcome;
  return {};
}

}  // namespace pnfsrdma::initiator
