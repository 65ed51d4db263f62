// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace pnfsrdma::initiator {

// Whether each write of a file is followed by an fsync, as in a database's log. Then a write includes its flush, and
// the fsync behind it finds nothing to do: one round trip instead of two. A guess: a wrong one costs a flush that
// nobody has asked for, and the next two writes in a row end it. Thread-safe; what is said at once may count once.
class SyncHabit {
 public:
  void wrote() {
    if (written_.load(std::memory_order_relaxed)) pairs_.store(0, std::memory_order_relaxed);
    written_.store(true, std::memory_order_relaxed);
  }
  void synced() {
    if (!written_.load(std::memory_order_relaxed)) return;
    written_.store(false, std::memory_order_relaxed);
    if (!expects_sync()) pairs_.fetch_add(1, std::memory_order_relaxed);
  }
  // Before a write.
  bool expects_sync() const {
    return !written_.load(std::memory_order_relaxed) && pairs_.load(std::memory_order_relaxed) >= kPairs;
  }

 private:
  static constexpr int kPairs = 4;

  std::atomic<bool> written_ = false;  // and not synced since
  std::atomic<int> pairs_ = 0;         // in a row
};

}  // namespace pnfsrdma::initiator
