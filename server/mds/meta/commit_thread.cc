// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/commit_thread.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {
namespace {

// Waking a sleeping thread takes about as long as this. While groups follow each other faster, the thread
// stays awake that long and no longer: an idle store costs nothing.
constexpr auto kSpin = std::chrono::microseconds(50);

// How often this thread has waited, and how often others were given its processor.
struct Switches {
  long waited = 0;
  long preempted = 0;
};
Switches switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return {usage.ru_nvcsw, usage.ru_nivcsw};
}

}  // namespace

CommitThread::CommitThread(EventLoop& loop, Hooks hooks, Milliseconds state_delay)
    : loop_(loop), hooks_(std::move(hooks)), state_delay_(state_delay), thread_([this] { run(); }) {}

CommitThread::~CommitThread() {
  work_.lock()->stopping = true;
  wake_.notify_one();
  thread_.join();
}

void CommitThread::committed(Sequence sequence, CommitKind kind) {
  if (kind == CommitKind::kNamespace && begins_here()) return sync_here(sequence);
  {
    auto work = work_.lock();
    work->committed = sequence;
    if (kind == CommitKind::kNamespace) {
      work->urgent = sequence;
      urgent_.store(sequence, std::memory_order_release);
    } else if (!work->state_deadline) {
      work->state_deadline = steady_now() + state_delay_;
    } else {
      return;  // the thread knows of an earlier deadline
    }
  }
  wake_.notify_one();  // no system call while nobody waits
}

void CommitThread::sync_anyway() {
  work_.lock()->anyway = true;
  wake_.notify_one();
}

void CommitThread::run() {
  while (const auto group = next_group()) {
    if (!sync_up_to(*group)) return;
  }
}

std::optional<Sequence> CommitThread::next_group() {
  const SteadyTime since = steady_now();
  spin();
  auto work = work_.lock();
  const auto ready = [](const Work& now) {
    return now.stopping || now.failed || now.anyway || now.urgent > now.synced;
  };
  while (!ready(*work)) {
    if (!work->state_deadline) {
      work.wait(wake_, [&](const Work& now) { return ready(now) || now.state_deadline; });
    } else if (!work.wait_until(wake_, *work->state_deadline, ready)) {
      break;
    }
  }
  if (work->here) {
    work->awaited = true;
    work.wait(wake_, [](const Work& now) { return !now.here; });
    work->awaited = false;
  }
  if (work->stopping || work->failed) return std::nullopt;
  busy_ = steady_now() - since < kSpin;
  work->state_deadline.reset();
  work->anyway = false;
  work->syncing = true;
  return work->committed;
}

void CommitThread::spin() {
  if (!busy_) return;
  const Sequence seen = work_.lock()->synced;
  const SteadyTime end = steady_now() + kSpin;
  while (urgent_.load(std::memory_order_acquire) <= seen && steady_now() < end) yield_thread();
}

// One at a time: the loop would wait for the thread, and the system tells of what it could not write but once, to
// either of them (fsync(2)).
bool CommitThread::begins_here() {
  if (quick_in_a_row_.load(std::memory_order_relaxed) < kQuickInARow) return false;
  if (hooks_.may_sync_here && !hooks_.may_sync_here()) return false;
  auto work = work_.lock();
  work->here = !work->syncing && !work->anyway && !work->failed;
  return work->here;
}

void CommitThread::sync_here(Sequence group) {
  const Result<> outcome = sync_measured();
  bool awaited = false;
  {
    auto work = work_.lock();
    work->here = false;
    awaited = work->awaited;
    work->committed = std::max(work->committed, group);
    work->failed = !outcome;  // the thread ends when it is woken
    if (outcome) work->synced = std::max(work->synced, group);
    if (outcome) work->state_deadline.reset();
  }
  if (awaited) wake_.notify_one();
  if (outcome) return hooks_.progress(group);
  log_error("meta", "sync-failed {}", outcome.error().to_string());
  hooks_.failed(outcome.error());
}

Result<> CommitThread::sync_measured() {
  const Switches before = switches();
  const SteadyTime begun = steady_now();
  Result<> outcome = hooks_.sync();
  const bool is_long = steady_now() - begun >= kQuick;
  // Its time was its own, or it has waited: for the device.
  const auto was_slow = [&before] {
    const Switches now = switches();
    return now.waited != before.waited || now.preempted == before.preempted;
  };
  if (is_long && was_slow())
    quick_in_a_row_ = 0;
  else
    quick_in_a_row_.fetch_add(1, std::memory_order_relaxed);
  return outcome;
}

bool CommitThread::sync_up_to(Sequence group) {
  const Result<> outcome = sync_measured();
  {
    auto work = work_.lock();
    work->syncing = false;
    work->failed = !outcome;  // before the loop hears of it: it may be about to sync, and that could succeed
    if (outcome) work->synced = std::max(work->synced, group);
  }
  if (!outcome) {
    // A second try could succeed without the pages the first one lost: nothing can be promised any more.
    log_error("meta", "sync-failed {}", outcome.error().to_string());
    loop_.post([failed = hooks_.failed, error = outcome.error()] { failed(error); });
    return false;
  }
  loop_.post([progress = hooks_.progress, group] { progress(group); });
  return true;
}

}  // namespace pnfsrdma::mds
