// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace pnfsrdma::initiator {

// Where one open file (a FUSE fh) stands in the errors of its inode: each loss is reported once per open
// file, by fsync. Belongs to the open. Thread-safe: of several fsyncs at once one reports it.
class ErrorCursor {
 public:
  explicit ErrorCursor(uint64_t losses = 0) : seen_(losses) {}
  ErrorCursor(const ErrorCursor& other) : seen_(other.seen_.load()) {}
  ErrorCursor& operator=(const ErrorCursor& other) {
    seen_ = other.seen_.load();
    return *this;
  }

  // They stand at the same loss.
  bool operator==(const ErrorCursor& other) const { return seen_.load() == other.seen_.load(); }
  bool news(uint64_t losses) const { return seen_ != losses; }
  bool take(uint64_t losses) { return seen_.exchange(losses) != losses; }

 private:
  std::atomic<uint64_t> seen_;
};

}  // namespace pnfsrdma::initiator
