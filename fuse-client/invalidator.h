// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "fuse-client/fuse_header.h"
#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// Tells the kernel to forget what it believes of a file. Its threads only call notify_inval_inode: that call waits for
// pages whose read waits for a worker, or for a brick that is silent, so no worker and no recall may make it (DESIGN.md
// section 9). One thread has the attributes, for which no page is waited for; of files whose pages go each has a thread
// while it waits, as many as there are at once, up to kThreadsMax: a file of a silent brick holds up no other.
// Thread-safe.
class Invalidator {
 public:
  static constexpr size_t kThreadsMax = 256;

  Invalidator() = default;
  ~Invalidator() { stop(); }
  Invalidator(const Invalidator&) = delete;
  Invalidator& operator=(const Invalidator&) = delete;

  // What the kernel is told by; may wait.
  using Notify = std::function<void(uint64_t node, bool with_pages)>;
  void start(Notify notify);
  void start(fuse_session* session);
  void stop();

  // Attributes only. Waits a moment until it is done; if it is not, the kernel's own timeout has to do.
  void attributes(uint64_t node);
  // Attributes and pages. Does not wait; `done` is called when it is done, by the thread that did it, or at
  // once when the mount ends. One after the other for each file.
  void pages(uint64_t node, std::function<void()> done = nullptr);

  size_t threads();

 private:
  using Done = std::function<void()>;

  void run_attributes();
  void run_pages();
  void add_thread_if_needed();

  static constexpr Milliseconds kPatience = std::chrono::milliseconds(50);
  static constexpr size_t kQueuedMax = 4096;

  Notify notify_;
  Mutex mutex_;
  Condition changed_;  // of the attributes
  Condition ready_for_threads_;
  // Guarded by mutex_.
  std::deque<uint64_t> attributes_;
  uint64_t asked_ = 0;
  uint64_t done_ = 0;
  // Each file's, in order; the first one is with a thread unless the file is in `ready_`.
  std::unordered_map<uint64_t, std::deque<Done>> pages_;
  std::deque<uint64_t> ready_;
  size_t queued_ = 0;
  size_t idle_ = 0;
  bool stopping_ = true;
  std::vector<Thread> threads_;
};

}  // namespace pnfsrdma::fuse_client
