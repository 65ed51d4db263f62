// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/replicated_store.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {
namespace {

// The base stalls, or its medium is full.
constexpr Milliseconds kBringAgain{10};
constexpr Milliseconds kCloseMax{5000};

}  // namespace

ReplicatedStore::ReplicatedStore(EventLoop& loop, std::unique_ptr<KeyValueStore> base,
                                 std::unique_ptr<Log> log, Options options)
    : loop_(loop),
      base_(std::move(base)),
      log_(std::move(log)),
      options_(std::move(options)),
      applied_(options_.position.applied) {
  log_->start({.logged = lifetime_.guard([this](const Logged& logged) { on_logged(logged); }),
               .lost = lifetime_.guard([this](const Error& error) { fail_for_good(error); })});
}

ReplicatedStore::~ReplicatedStore() = default;

void ReplicatedStore::when_synced(Sequence sequence, std::function<void()> callback) {
  waiters_.add(sequence, std::move(callback));
  if (sequence <= synced_) loop_.at_turn_end(lifetime_.guard([this] { progress(); }));
}

void ReplicatedStore::when_written(std::function<void()> callback) {
  if (!check_lead()) return;
  waiters_.add(last_, [this, callback = std::move(callback)] {
    if (check_lead()) callback();
  });
}

// Once it was doubtful it stays so: an answer that did not leave then would never leave.
bool ReplicatedStore::check_lead() {
  if (failure_) return false;
  if (options_.leads()) return true;
  fail_for_good({ESTALE, "the lead could not be renewed in time"});
  return false;
}

Result<std::optional<std::string>> ReplicatedStore::read(SnapshotNumber at, std::string_view key,
                                                         Reach reach) {
  if (at == 0) {
    if (const Overlay::Row* row = overlay_.find(key)) return row->value;
  }
  return base_->read(at, key, reach);
}

Result<> ReplicatedStore::walk(SnapshotNumber at, std::string_view prefix, std::string_view from,
                               const Visitor& visitor, Reach reach, std::string& reached) {
  if (at != 0 || overlay_.rows().empty()) return base_->walk(at, prefix, from, visitor, reach, reached);
  MergedWalk merged(overlay_, prefix, from, visitor);
  const auto visit = [&](std::string_view key, std::string_view value) {
    return merged.base_row(key, value);
  };
  Result<> walked = base_->walk(at, prefix, from, visit, reach, reached);
  if (walked) {
    merged.rest({});
  } else if (walked.error().number() == kNotAtHand && !merged.rest(reached)) {
    return {};
  }
  return walked;
}

void ReplicatedStore::fetch(std::vector<Wanted> wanted, Arrived done) {
  auto parts = std::make_shared<std::vector<OverlayPart>>();
  static const Overlay kNothing;
  for (const Wanted& one : wanted) {
    const Overlay& over = one.snapshot == 0 ? overlay_ : kNothing;
    parts->emplace_back(over, one);
  }
  base_->fetch(std::move(wanted), [parts, done = std::move(done)](std::vector<Brought> brought) {
    for (size_t i = 0; i < brought.size() && i < parts->size(); ++i)
      brought[i] = (*parts)[i].over(std::move(brought[i]));
    done(std::move(brought));
  });
}

Result<Sequence> ReplicatedStore::write(const Batch& batch, CommitKind) {
  if (failure_) return std::unexpected(*failure_);
  if (base_->room().stopped && !batch.makes_room()) return fail(EAGAIN, "the metadata disk is full");
  if (waiting_bytes() > kWaitingBytesMax) return fail(EAGAIN, "changes wait for the log");
  overlay_.add(batch, ++last_);
  turn_.append(batch);
  turn_bytes_ += encoded_size(batch);
  if (batch.makes_room()) turn_.mark_makes_room();
  if (!std::exchange(turn_ends_, true)) loop_.at_turn_end(lifetime_.guard([this] { end_turn(); }));
  return last_;
}

void ReplicatedStore::end_turn() {
  if (!std::exchange(turn_ends_, false) || failure_) return;
  Pending pending;
  pending.record.batch = std::exchange(turn_, {});
  turn_bytes_ = 0;
  append(std::move(pending));
}

void ReplicatedStore::append(Pending pending) {
  pending.last = last_;
  std::string record = encode_record(pending.record);
  pending.bytes = record.size();
  pending_bytes_ += pending.bytes;
  log_->append(std::move(record));
  pending_.push_back(std::move(pending));
}

void ReplicatedStore::on_logged(const Logged& logged) {
  if (failure_) return;
  take_logged(logged);
  progress();
  bring();
}

void ReplicatedStore::take_logged(const Logged& logged) {
  if (logged.records <= logged_records_) return;  // sync() has seen it
  for (uint64_t i = logged_records_ - applied_records_; i < logged.records - applied_records_; ++i) {
    pending_[i].end = logged.end;
    logged_ = pending_[i].last;
  }
  logged_records_ = logged.records;
}

// In slices: one value may be what thousands wait for.
void ReplicatedStore::progress() {
  if (failure_) return;
  const SteadyTime end = loop_.now() + EventLoop::kSlice;
  bool any = false;
  const Sequence reached =
      waiters_.run(logged_, [&] { return std::exchange(any, true) && loop_.now() >= end; });
  synced_ = std::max(synced_, reached);
  if (reached >= logged_ || std::exchange(goes_on_, true)) return;
  loop_.at_next_turn(lifetime_.guard([this] {
    goes_on_ = false;
    progress();
  }));
}

// A part of it in each turn: the base takes a batch at once, and clients wait meanwhile.
void ReplicatedStore::bring() {
  if (failure_ || brings_later_) return;
  const Result<> applied = apply(kOperationsMax);
  if (!applied && applied.error().number() != EAGAIN) return fail_for_good(applied.error());
  if (!applied) return bring_later(kBringAgain);
  if (can_apply()) bring_later(Milliseconds(0));
}

void ReplicatedStore::bring_later(Milliseconds delay) {
  brings_later_ = true;
  auto again = lifetime_.guard([this] {
    brings_later_ = false;
    bring();
  });
  delay > Milliseconds(0) ? void(loop_.after(delay, std::move(again))) : loop_.at_next_turn(std::move(again));
}

Result<> ReplicatedStore::apply(size_t operations_max) {
  for (size_t operations = 0; can_apply() && operations < operations_max;) {
    switch (pending_.front().record.kind) {
      case LogRecordKind::kBatch: {
        TRY_ASSIGN(const size_t applied, apply_batches(operations_max - operations));
        operations += applied;
        break;
      }
      case LogRecordKind::kCheckpoint:
        TRY(apply_checkpoint());
        break;
      case LogRecordKind::kDropCheckpoint:
        apply_drop();
        break;
    }
  }
  return {};
}

Result<size_t> ReplicatedStore::apply_batches(size_t operations_max) {
  Batch batch;
  size_t count = 0;
  const bool makes_room = pending_.front().record.batch.makes_room();
  for (const Pending& one : pending_) {
    if (one.end.position == 0 || one.record.kind != LogRecordKind::kBatch) break;
    if (one.record.batch.makes_room() != makes_room) break;
    if (count > 0 && batch.size() + one.record.batch.size() > operations_max) break;
    batch.append(one.record.batch);
    ++count;
  }
  const size_t operations = batch.size();
  if (makes_room) batch.mark_makes_room();
  TRY(commit_to_base(std::move(batch), end_behind(count)));
  for (; count > 0; --count) {
    overlay_.drop(pending_.front().record.batch, pending_.front().last);
    pop_front();
  }
  return std::max<size_t>(operations, 1);
}

// Of the last value that is whole among them. While others of a value wait, a restart begins with it again: what it has
// is put once more.
LogPoint ReplicatedStore::end_behind(size_t count) const {
  for (; count > 0; --count) {
    const LogPoint& end = pending_[count - 1].end;
    if (count == pending_.size() || pending_[count].end.position != end.position) return end;
  }
  return applied_;
}

Result<> ReplicatedStore::commit_to_base(Batch batch, const LogPoint& end) {
  put_position(batch, {options_.position.identity, end});
  TRY_ASSIGN(base_newest_, base_->commit(batch, CommitKind::kState));
  applied_ = end;
  watch_medium();
  return {};
}

// One look at a time: the base syncs when it likes.
void ReplicatedStore::watch_medium() {
  if (std::exchange(watches_medium_, true)) return;
  base_->when_synced(base_newest_,
                     lifetime_.guard([this, sequence = base_newest_, position = applied_.position] {
                       watches_medium_ = false;
                       if (options_.durable) options_.durable(position);
                       if (base_newest_ != sequence) watch_medium();
                     }));
}

// No commit has come behind it: all before it is in the base, and nothing else. It ends its value, so a restart makes
// no second one, which would have what comes now.
Result<> ReplicatedStore::apply_checkpoint() {
  Pending& front = pending_.front();
  if (front.copied) {
    TRY(commit_to_base({}, end_behind(1)));
    const auto done = std::move(front.done);
    const Result<> outcome = *front.copied;
    pop_front();
    if (done) done(outcome);
  } else if (!front.done) {
    pop_front();
  } else {
    copying_ = true;
    base_->checkpoint(front.record.checkpoint, lifetime_.guard([this](const Result<>& outcome) {
      copying_ = false;
      pending_.front().copied = outcome;
      bring();
    }));
  }
  return {};
}

void ReplicatedStore::apply_drop() {
  auto done = std::move(pending_.front().done);
  base_->drop_checkpoint(pending_.front().record.checkpoint,
                         [done = std::move(done)](const Result<>& outcome) {
                           if (done) done(outcome);
                         });
  pop_front();
}

void ReplicatedStore::pop_front() {
  pending_bytes_ -= pending_.front().bytes;
  pending_.pop_front();
  ++applied_records_;
}

void ReplicatedStore::make_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) {
  const bool busy = std::ranges::any_of(
      pending_, [](const Pending& one) { return one.record.kind == LogRecordKind::kCheckpoint && one.done; });
  std::optional<Error> refused = failure_;
  if (busy) refused = Error(EBUSY, "a snapshot is being taken");
  if (refused) {
    return loop_.post(
        lifetime_.guard([refused = *refused, done = std::move(done)] { done(std::unexpected(refused)); }));
  }
  end_turn();
  Pending pending;
  pending.record = {LogRecordKind::kCheckpoint, {}, number};
  pending.done = std::move(done);
  append(std::move(pending));
}

void ReplicatedStore::drop_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) {
  if (failure_) return;
  end_turn();  // what was committed before goes before
  Pending pending;
  pending.record = {LogRecordKind::kDropCheckpoint, {}, number};
  pending.done = std::move(done);
  append(std::move(pending));
}

void ReplicatedStore::end_checkpoints() {
  base_->end_checkpoints();
  if (std::exchange(copying_, false)) pop_front();
  for (Pending& one : pending_) one.done = nullptr;
  forget_checkpoint();
}

Result<> ReplicatedStore::sync() {
  if (failure_) return std::unexpected(*failure_);
  end_turn();
  const auto logged = log_->wait();
  if (!logged) {
    fail_for_good(logged.error());
    return std::unexpected(logged.error());
  }
  take_logged(*logged);
  const Result<> applied = apply(SIZE_MAX);
  if (!applied && applied.error().number() != EAGAIN) fail_for_good(applied.error());
  bring();
  loop_.at_turn_end(lifetime_.guard([this] { progress(); }));
  synced_ = logged_;
  if (failure_) return std::unexpected(*failure_);
  return {};
}

Result<> ReplicatedStore::close() {
  TRY(sync());
  end_checkpoints();
  // What a full disk keeps out of the base is in the log.
  for (const SteadyTime end = steady_now() + kCloseMax; !pending_.empty() && steady_now() < end;) {
    const Result<> applied = apply(SIZE_MAX);
    if (!applied && applied.error().number() != EAGAIN) return applied;
    if (!applied) sleep_for(kBringAgain);
  }
  waiters_.clear();
  return base_->close();
}

void ReplicatedStore::fail_for_good(const Error& error) {
  if (failure_) return;
  failure_ = error;
  waiters_.clear();
  if (options_.failed) loop_.post([failed = options_.failed, error] { failed(error); });
}

}  // namespace pnfsrdma::mds
