// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "library/open_file.h"
#include "library/pnfsrdma.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"

namespace pnfsrdma::library {

// Operations that a program does not wait for, and what became of them. What can be done without waiting (Flight)
// goes out at once and is completed by whoever polls the connection; the rest is done by a few helper threads, which
// are started when there is something to do. Thread-safe. An operation of the first kind allocates nothing, and costs
// no system call but the connection's.
class Queue {
 public:
  static constexpr unsigned kDepthMax = 4096;
  static constexpr size_t kHelpersMax = 8;

  static Result<std::unique_ptr<Queue>> create(Connection& connection, unsigned depth);
  // Waits for what is under way.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Connection& connection() const { return use_.connection(); }
  int fd() const { return watched_.get(); }
  // With one doorbell, and one flush behind all that has to be durable. How many were taken. EAGAIN: the queue is full;
  // EINVAL: the first one is not an operation.
  Result<size_t> submit(std::span<const pnfsrdma_operation> operations);
  // `timeout_ms` as poll(2)'s. EINTR: a signal came while nothing had completed.
  Result<size_t> reap(std::span<pnfsrdma_completion> completions, int timeout_ms);

 private:
  class Slot;
  // Slots one behind the other; none of them is in two.
  struct Slots {
    Slot* first = nullptr;
    Slot* last = nullptr;
    size_t count = 0;
    void add(Slot& slot);
    Slot* take();
  };

  Queue(Connection& connection, unsigned depth, FileDescriptor event, FileDescriptor watched,
        int completions);

  size_t start(std::span<const pnfsrdma_operation> operations, Together* together);
  void help();
  void do_due(Slot& slot);
  void completed(Slot& slot);
  void leave_to_helper(Slot& slot);
  void finish(Slot& slot, int64_t result, uint64_t offset);
  bool finish_completed();
  size_t take(std::span<pnfsrdma_completion> completions);
  void signal();
  void unsignal();
  void watch_completions();

  const ConnectionUse use_;
  const FileDescriptor event_, watched_;  // watched_: event_, and at times completions_
  const int completions_;                 // the connection's
  std::vector<std::unique_ptr<Slot>> all_;

  Mutex mutex_;  // everything below
  Condition work_;
  Slots free_;
  Slots completed_;                        // to be finished
  Slots waiting_;                          // for a helper
  std::vector<pnfsrdma_completion> done_;  // a ring
  size_t first_done_ = 0, done_count_ = 0;
  size_t running_ = 0;  // submitted and not in done_
  size_t flying_ = 0;   // of these
  bool watching_ = false;
  size_t reaping_ = 0, sleeping_ = 0;
  bool signalled_ = false;
  size_t idle_helpers_ = 0;
  bool ending_ = false;
  std::vector<Thread> helpers_;
};

}  // namespace pnfsrdma::library
