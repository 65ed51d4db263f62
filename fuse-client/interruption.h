// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "fuse-client/fuse_header.h"

namespace pnfsrdma::fuse_client {

// Listens, while it lives, whether the process that made the request was interrupted (a signal, Ctrl-C, kill
// -9): then the call to the server is given up with EINTR. Lives on the worker's stack, never longer than the
// request.
class Interruption {
 public:
  explicit Interruption(fuse_req_t request) : request_(request) {
    fuse_req_interrupt_func(
        request, [](fuse_req_t, void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }, &flag_);
  }
  // Behind it libfuse does not touch the flag any more: both take the request's lock.
  ~Interruption() { fuse_req_interrupt_func(request_, nullptr, nullptr); }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  const std::atomic<bool>* flag() const { return &flag_; }

 private:
  fuse_req_t request_;
  std::atomic<bool> flag_ = false;
};

}  // namespace pnfsrdma::fuse_client
