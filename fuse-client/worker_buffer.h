// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/initiator/brick/buffer.h"

namespace pnfsrdma::fuse_client {

// The registered buffer of the calling worker thread: its request was received into it, a READ's data lands
// in it. libfuse gives its callbacks no place for it, hence one pointer per thread. Null on a thread that is
// no worker.
class WorkerBuffer {
 public:
  static initiator::Buffer* current() { return current_; }
  static void set(initiator::Buffer* buffer) { current_ = buffer; }

 private:
  static inline thread_local initiator::Buffer* current_ = nullptr;
};

}  // namespace pnfsrdma::fuse_client
