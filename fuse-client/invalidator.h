// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "fuse-client/fuse_header.h"
#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// Tells the kernel to forget what it believes of a file. The only thread that calls notify_inval_inode: that
// call can wait for pages whose read waits for a worker, so no worker and no recall may make it (DESIGN.md
// section 9). Thread-safe.
class Invalidator {
 public:
  Invalidator() = default;
  ~Invalidator() { stop(); }
  Invalidator(const Invalidator&) = delete;
  Invalidator& operator=(const Invalidator&) = delete;

  void start(fuse_session* session);
  void stop();

  // Attributes only. Waits a moment until it is done: that takes no page lock, so it is quick; if not, the
  // kernel's own timeout has to do.
  void attributes(uint64_t node);
  // Attributes and pages. Does not wait; `done` is called when it is done, by the thread that did it, or at
  // once when the mount ends.
  void pages(uint64_t node, std::function<void()> done = nullptr);

 private:
  struct Job {
    uint64_t node = 0;
    bool with_pages = false;
    uint64_t number = 0;
    std::function<void()> done;
  };
  void run();

  static constexpr Milliseconds kPatience = std::chrono::milliseconds(50);
  static constexpr size_t kQueuedMax = 4096;

  fuse_session* session_ = nullptr;
  Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  std::deque<Job> jobs_;
  uint64_t asked_ = 0;
  uint64_t done_ = 0;
  bool stopping_ = true;
  Thread thread_;
};

}  // namespace pnfsrdma::fuse_client
