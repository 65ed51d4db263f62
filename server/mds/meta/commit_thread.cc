// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/commit_thread.h"

#include <sched.h>

#include <chrono>
#include <utility>

#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {
namespace {

// Waking a sleeping thread takes about as long as this. While groups follow each other faster, the thread
// stays awake that long and no longer: an idle store costs nothing.
constexpr auto kSpin = std::chrono::microseconds(50);

}  // namespace

CommitThread::CommitThread(EventLoop& loop, Hooks hooks, Milliseconds state_delay)
    : loop_(loop), hooks_(std::move(hooks)), state_delay_(state_delay), thread_([this] { run(); }) {}

CommitThread::~CommitThread() {
  work_.lock()->stopping = true;
  wake_.notify_one();
  thread_.join();
}

void CommitThread::committed(Sequence sequence, CommitKind kind) {
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
  const auto ready = [](const Work& now) { return now.stopping || now.anyway || now.urgent > now.synced; };
  while (!ready(*work)) {
    if (!work->state_deadline) {
      work.wait(wake_, [&](const Work& now) { return ready(now) || now.state_deadline; });
    } else if (!work.wait_until(wake_, *work->state_deadline, ready)) {
      break;
    }
  }
  if (work->stopping) return std::nullopt;
  busy_ = steady_now() - since < kSpin;
  work->state_deadline.reset();
  work->anyway = false;
  return work->committed;
}

void CommitThread::spin() {
  if (!busy_) return;
  const Sequence seen = work_.lock()->synced;
  const SteadyTime end = steady_now() + kSpin;
  while (urgent_.load(std::memory_order_acquire) <= seen && steady_now() < end) yield_thread();
}

bool CommitThread::sync_up_to(Sequence group) {
  const Result<> outcome = hooks_.sync();
  if (!outcome) {
    // A second try could succeed without the pages the first one lost: nothing can be promised any more.
    log_error("meta", "sync-failed {}", outcome.error().to_string());
    loop_.post([failed = hooks_.failed, error = outcome.error()] { failed(error); });
    return false;
  }
  work_.lock()->synced = group;
  loop_.post([progress = hooks_.progress, group] { progress(group); });
  return true;
}

}  // namespace pnfsrdma::mds
