// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "library/open_file.h"
#include "library/pnfsrdma.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"

namespace pnfsrdma::library {

// Operations that a program does not wait for, and what became of them. Each is done by one of a few helper
// threads, which are started when there is something to do. Thread-safe.
class Queue {
 public:
  static constexpr unsigned kDepthMax = 4096;
  static constexpr size_t kHelpersMax = 8;

  static Result<std::unique_ptr<Queue>> create(Client& client, unsigned depth);
  // Waits for what is under way.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Client& client() const { return client_; }
  int fd() const { return event_.get(); }
  // How many were taken. EAGAIN: the queue is full; EINVAL: the first one is not an operation.
  Result<size_t> submit(std::span<const pnfsrdma_operation> operations);
  // `timeout_ms` as poll(2)'s. EINTR: a signal came while nothing had completed.
  Result<size_t> reap(std::span<pnfsrdma_completion> completions, int timeout_ms);

 private:
  Queue(Client& client, unsigned depth, FileDescriptor event);

  void run();
  void finish(const pnfsrdma_operation& operation, int64_t result, uint64_t offset);
  size_t take(std::span<pnfsrdma_completion> completions);

  Client& client_;
  const size_t depth_;
  const FileDescriptor event_;
  Mutex mutex_;
  Condition work_, idle_;
  std::deque<pnfsrdma_operation> waiting_;
  std::deque<pnfsrdma_completion> done_;
  size_t taken_ = 0;  // submitted and not reaped
  size_t idle_helpers_ = 0;
  bool ending_ = false;
  std::vector<Thread> helpers_;
};

}  // namespace pnfsrdma::library
