// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pnfsrdma::fuse_client {

// malloc keeps what is freed. Some time after many inodes were forgotten (rm -rf; the kernel is short of
// memory) it goes back to the system. For one thread, which calls tick() every few seconds.
class HeapTrimmer {
 public:
  static constexpr uint64_t kMany = 8192;
  // What closed files still owed the server goes with their flush, which may be ten seconds later.
  static constexpr int kTicks = 4;

  // `forgotten`: inodes so far. True: now is the time.
  bool tick(uint64_t forgotten) {
    if (forgotten - seen_ >= kMany) {
      seen_ = forgotten;
      left_ = kTicks;
    }
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  uint64_t seen_ = 0;
  int left_ = 0;
};

}  // namespace pnfsrdma::fuse_client
