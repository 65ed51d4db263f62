// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <unordered_map>
#include <vector>

#include "fuse-client/fuse_header.h"
#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// Tells the kernel to forget what it believes of a file. Only its threads call notify_inval_inode: that call
// can wait for pages whose read waits for a worker, so no worker and no recall may make it (DESIGN.md section
// 9). One that waits for a page of a silent brick holds up its thread, so there is another for the next file, up
// to kThreadsMax; what is behind them all waits. What waits for a thread and means the same pages is done
// together. Thread-safe.
class Invalidator {
 public:
  using Done = std::function<void()>;
  // How the kernel is told: of a negative offset attributes only, of length 0 all pages behind the offset.
  using Notify = std::function<void(uint64_t node, int64_t offset, int64_t length)>;

  Invalidator() = default;
  ~Invalidator() { stop(); }
  Invalidator(const Invalidator&) = delete;
  Invalidator& operator=(const Invalidator&) = delete;

  void start(fuse_session* session);
  void start(Notify notify);
  // Waits until nothing is left to do. False when `deadline` passed first.
  bool drain(SteadyTime deadline);
  void stop();

  // Attributes only. Waits a moment until it is done: that takes no page lock, so it is quick; if not, the
  // kernel's own timeout has to do.
  void attributes(uint64_t node);
  // The same without waiting, as pages().
  void attributes(uint64_t node, Done done) { add(node, -1, 0, std::move(done)); }
  // Attributes and pages. Does not wait; `done` is called when it is done, by the thread that did it, or at
  // once when the mount ends.
  void pages(uint64_t node, Done done = nullptr);
  void pages(uint64_t node, uint64_t offset, uint64_t length, Done done);

 private:
  struct Job {
    uint64_t node = 0;
    int64_t offset = 0;
    int64_t length = 0;
    std::vector<Done> done;
  };
  void add(uint64_t node, int64_t offset, int64_t length, Done done);
  void run();

  static constexpr Milliseconds kPatience = std::chrono::milliseconds(50);
  static constexpr size_t kQueuedMax = 4096;
  static constexpr size_t kThreadsMax = 32;

  Notify notify_;
  Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  std::list<Job> jobs_;
  std::unordered_map<uint64_t, Job*> all_pages_;  // of jobs_: all pages of a node
  size_t idle_ = 0, busy_ = 0;
  bool stopping_ = true;
  std::vector<Thread> threads_;
};

}  // namespace pnfsrdma::fuse_client
