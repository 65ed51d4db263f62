// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <unordered_map>

#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// Whose open (or exchange of names) was answered ESTALE: Linux then looks the path up again and tries a second time,
// once. Callers are threads, as FUSE numbers them. Thread-safe.
class SecondOpens {
 public:
  explicit SecondOpens(const Clock& clock) : clock_(clock) {}

  // This caller is told ESTALE now.
  void expect(pid_t caller) {
    const std::lock_guard lock(mutex_);
    if (expected_.size() >= kExpectedMax) expected_.clear();
    expected_.insert_or_assign(caller, clock_.now());
    any_ = true;
  }
  // Is this its second try? Asked once for each open, or when it has become clear that there will be none.
  bool take(pid_t caller) {
    if (!any_) return false;
    const std::lock_guard lock(mutex_);
    const auto found = expected_.find(caller);
    if (found == expected_.end()) return false;
    const bool soon = clock_.now() - found->second < kSoon;
    expected_.erase(found);
    any_ = !expected_.empty();
    return soon;
  }

  // A second try comes behind one walk along the path.
  static constexpr Milliseconds kSoon = std::chrono::seconds(10);
  static constexpr size_t kExpectedMax = 1024;

 private:
  const Clock& clock_;
  std::atomic<bool> any_ = false;  // spares the lock where there is nobody, which is nearly always
  Mutex mutex_;
  std::unordered_map<pid_t, SteadyTime> expected_;
};

}  // namespace pnfsrdma::fuse_client
