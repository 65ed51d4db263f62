// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>

#include "server/mds/meta/key_value.h"
#include "shared/base/clock.h"
#include "shared/base/event_loop.h"
#include "shared/base/guarded.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

// Makes commits durable outside the control loop: one sync covers all that were committed before it began
// (group commit), and those that come meanwhile are the next group's. Where a sync waits for no device (tmpfs, memory
// that is mapped), it takes less than to wake a thread: then the loop does it itself, behind each turn. Made, told and
// ended by the control loop.
class CommitThread {
 public:
  // `sync` runs in the thread, or in the loop where `may_sync_here` allows it (none: it does) at that moment.
  // `progress` and `failed` are called in the loop; after `failed` nothing is synced any more.
  struct Hooks {
    std::function<Result<>()> sync;
    std::function<void(Sequence synced)> progress;
    std::function<void(Error error)> failed;
    std::function<bool()> may_sync_here = nullptr;
  };
  // So many syncs in a row have to be quick before the loop does them, until one is not: quick is what takes less than
  // `kQuick`, but for time in which others had the processor.
  static constexpr uint32_t kQuickInARow = 1000;
  static constexpr std::chrono::microseconds kQuick{50};
  CommitThread(EventLoop& loop, Hooks hooks, Milliseconds state_delay);
  // Ends the thread; what is not synced by then stays so.
  ~CommitThread();
  CommitThread(const CommitThread&) = delete;
  CommitThread& operator=(const CommitThread&) = delete;

  // `sequence` has been written. A namespace commit is synced at once, a state commit with the next one or
  // after the delay.
  void committed(Sequence sequence, CommitKind kind);
  // Calls `sync` though nothing is to be synced.
  void sync_anyway();

 private:
  struct Work {
    Sequence committed = 0;  // of any kind
    Sequence urgent = 0;     // the newest of kNamespace
    Sequence synced = 0;
    std::optional<SteadyTime> state_deadline;  // of the oldest state commit not synced
    bool anyway = false;
    bool stopping = false;
    bool syncing = false;  // in the thread
    bool here = false;     // in the loop: the thread waits for its end
    bool awaited = false;  // it does
    bool failed = false;   // in either
  };

  void run();
  // Waits for something to sync. nullopt: stop.
  std::optional<Sequence> next_group();
  void spin();
  bool sync_up_to(Sequence group);
  bool begins_here();
  void sync_here(Sequence group);
  Result<> sync_measured();

  EventLoop& loop_;
  const Hooks hooks_;
  const Milliseconds state_delay_;
  Guarded<Work> work_;
  Condition wake_;
  std::atomic<Sequence> urgent_ = 0;          // Work::urgent, for spin()
  std::atomic<uint32_t> quick_in_a_row_ = 0;  // syncs
  bool busy_ = false;  // the thread's own: the last group came soon after the one before
  Thread thread_;
};

}  // namespace pnfsrdma::mds
