// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/snapshot_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {
// Between two tries to find nobody who writes; and so long turns are held in one of them, until it is copied.
constexpr Milliseconds kStillAgain{50};
constexpr Milliseconds kHoldPatience{300};
// What the store cannot take now.
constexpr Milliseconds kCommitAgain{50};
constexpr Milliseconds kRemoveAgain{1000};
// Files that get their turns again in one turn of the loop.
constexpr size_t kTurnsPerSlice = 64;
}  // namespace

SnapshotKeeper::SnapshotKeeper(EventLoop& loop, const Clock& clock, Namespace& names, FileSpace& space,
                               InodeQueue& queue, Layouts& layouts, FileIo& io)
    : loop_(loop),
      clock_(clock),
      names_(names),
      store_(names.store()),
      space_(space),
      queue_(queue),
      layouts_(layouts),
      io_(io) {}

SnapshotKeeper::~SnapshotKeeper() {
  loop_.cancel(patience_);
  loop_.cancel(hold_patience_);
}

Result<> SnapshotKeeper::recover() {
  std::set<SnapshotNumber> ready;
  std::set<SnapshotNumber> rest;
  for (const auto& [number, snapshot] : names_.snapshots().all())
    (snapshot.is_ready() ? ready : rest).insert(number);
  TRY(store_.keep_checkpoints(ready));
  for (const SnapshotNumber number : rest) finish_removal(number);
  // Of one that went off the record, and no further.
  if (names_.snapshots().now() != 0) free_memory();
  return {};
}

// --- taking one: nobody writes, then nobody has a turn, then the metadata is copied, and all go on. ---

void SnapshotKeeper::take(std::string_view name, Taken done, SnapshotClass schedule, Revoking revoking) {
  if (taking_) return done(fail(EBUSY, "another snapshot is being taken"));
  if (!is_snapshot_name(name)) return done(fail(EINVAL, "a snapshot needs a name like a file's"));
  if (names_.snapshots().find(name) != nullptr) return done(fail(EEXIST, "there is a snapshot of that name"));
  if (names_.snapshots().is_full()) return done(fail(EMFILE, "there are as many snapshots as there may be"));
  if (!layouts_.bricks_ready())
    return done(fail(ETIMEDOUT, "a brick is away: who writes there is not known"));
  if (store_.room().full) return done(fail(ENOSPC, "the metadata disk is full"));
  taking_ = Taking{.name = std::string(name),
                   .done = std::move(done),
                   .schedule = schedule,
                   .revoking = std::move(revoking)};
  // So that there is little left to write while others wait.
  store_.prepare_checkpoint(lifetime_.guard([this] {
    be_patient();
    stop_writers();
  }));
}

void SnapshotKeeper::be_patient() {
  taking_->written = layouts_.written();
  patience_ = loop_.after(kStillPatience, [this] { out_of_patience(); });
}

// Who has not given back what he was asked for loses it, and all begins again, once.
void SnapshotKeeper::out_of_patience() {
  const size_t halvings = kStillSteps - std::min(++taking_->steps, kStillSteps);
  const size_t wanted = std::max<size_t>(taking_->written >> halvings, 1);
  // Somebody with thousands of files, or little time, is on it.
  if (layouts_.written() + wanted <= taking_->written) return be_patient();
  if (!taking_->revoking) return give_up();
  end_try();
  resume();
  taking_->steps = 0;
  be_patient();
  layouts_.revoke_writers(
      std::exchange(taking_->revoking, nullptr), [this, number = try_] { return number == try_; },
      [next = in_this_try([this] { stop_writers(); })] { next(true); });
}

// Whatever is under way: nothing of it has changed anything that stays.
void SnapshotKeeper::give_up() {
  end(fail(ETIMEDOUT, fmt::format("clients may write {} files that they do not return, or a brick is away",
                                  layouts_.written())));
}

// Of this try: its answer may come when that has ended, or the next one has begun.
std::function<void(bool)> SnapshotKeeper::in_this_try(std::function<void()> then) {
  return lifetime_.guard([this, number = try_, then = std::move(then)](bool good) {
    if (number != try_) return;
    if (!good) return again();
    then();
  });
}

// What was written is made durable, most of it while others go on.
void SnapshotKeeper::stop_writers() {
  ++try_;
  layouts_.stop_writers([stopped = in_this_try([this] {
                           if (layouts_.written() > 0) return again();
                           const auto held = in_this_try([this] { hold(); });
                           io_.commit_all([held](bool) { held(true); });
                         })] { stopped(true); });
}

// Never for long: meanwhile everybody waits.
void SnapshotKeeper::hold() {
  hold_patience_ = loop_.after(kHoldPatience, [this] { again(); });
  queue_.hold([still = in_this_try([this] { look(); })] { still(true); });
}

// The rest, for nobody can make it durable later: COMMIT is of what the file has by then.
void SnapshotKeeper::look() {
  layouts_.is_still(in_this_try([this] { io_.commit_all(in_this_try([this] { copy(); })); }));
}

// Somebody was faster, or needs longer.
void SnapshotKeeper::again() {
  end_try();
  resume();
  later(kStillAgain, [this, next = in_this_try([this] { stop_writers(); })] { next(true); });
}

void SnapshotKeeper::end_try() {
  ++try_;
  loop_.cancel(hold_patience_);
}

void SnapshotKeeper::resume() {
  if (queue_.release(kTurnsPerSlice)) loop_.at_next_turn(lifetime_.guard([this] { resume_rest(); }));
}

void SnapshotKeeper::resume_rest() {
  if (!queue_.held()) resume();
}

void SnapshotKeeper::copy() {
  end_try();
  loop_.cancel(patience_);
  const auto number = names_.snapshots().begin(taking_->name, clock_.wall_now(), taking_->schedule);
  if (!number) return end(std::unexpected(number.error()));
  taking_->number = *number;
  store_.checkpoint(*number, lifetime_.guard([this](const Result<>& made) { copied(made); }));
}

void SnapshotKeeper::copied(const Result<>& made) {
  if (!made) {
    forget(taking_->number);
    return end(std::unexpected(made.error()));
  }
  layouts_.let_write();
  resume();
  tell_ready();
}

void SnapshotKeeper::tell_ready() {
  const auto told = names_.snapshots().set_state(taking_->number, SnapshotState::kReady);
  if (!told && told.error().number() == EAGAIN) return later(kCommitAgain, [this] { tell_ready(); });
  if (!told) {
    forget(taking_->number);
    return end(std::unexpected(told.error()));
  }
  store_.when_synced(store_.last_namespace_sequence(), lifetime_.guard([this] { end(taking_->number); }));
}

void SnapshotKeeper::end(Result<SnapshotNumber> outcome) {
  end_try();
  loop_.cancel(patience_);
  layouts_.let_write();
  resume();
  const Taking taking = *std::exchange(taking_, std::nullopt);
  if (outcome) {
    log_info("snapshots", "snapshot-taken name=\"{}\" number={}", taking.name, *outcome);
  } else {
    log_warning("snapshots", "snapshot-failed name=\"{}\" error=\"{}\"", taking.name,
                outcome.error().to_string());
  }
  taking.done(std::move(outcome));
}

// --- deleting one: nobody finds it, nobody reads it, nothing keeps its memory. ---

void SnapshotKeeper::remove(std::string_view called, Done done) {
  // Not of the record's own bytes, which change.
  const std::string name(called);
  const Snapshot* const found = names_.snapshots().find(name);
  if (found == nullptr || !found->is_ready()) return done(fail(ENOENT, "there is no snapshot " + name));
  const SnapshotNumber number = found->number;
  if (const auto gone = names_.snapshots().set_state(number, SnapshotState::kGoing); !gone)
    return done(std::unexpected(gone.error()));
  log_info("snapshots", "snapshot-deleted name=\"{}\" number={}", name, number);
  store_.when_synced(store_.last_namespace_sequence(),
                     lifetime_.guard([this, number, done = std::move(done)] {
                       finish_removal(number);
                       done({});
                     }));
}

void SnapshotKeeper::finish_removal(SnapshotNumber number) {
  layouts_.end_snapshot(number, lifetime_.guard([this, number] { forget(number); }));
}

// Off the record first, then its memory: a crash between leaves memory that nobody has, which a start frees.
void SnapshotKeeper::forget(SnapshotNumber number) {
  if (!names_.snapshots().erase(number)) return later(kRemoveAgain, [this, number] { forget(number); });
  store_.when_synced(store_.last_namespace_sequence(), lifetime_.guard([this, number] {
    names_.snapshots().forget(number);
    store_.drop_checkpoint(number, [number](const Result<>& dropped) {
      if (dropped) return;
      log_warning("snapshots", "checkpoint-not-dropped number={} error=\"{}\"", number,
                  dropped.error().to_string());
    });
    free_memory();
  }));
}

void SnapshotKeeper::free_memory() {
  space_.free_dead([this](bool all) {
    if (!all) later(kRemoveAgain, [this] { free_memory(); });
  });
}

}  // namespace pnfsrdma::mds
