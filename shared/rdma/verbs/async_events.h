// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <thread>

#include "shared/rdma/verbs/handles.h"

namespace pnfsrdma::rdma::verbs {

// Who wants to hear of a queue pair's asynchronous events: its `qp_context` points to one. Called in the
// event thread; the queue pair cannot be destroyed meanwhile (ibv_destroy_qp waits for the acknowledgement).
class AsyncEventTarget {
 public:
  virtual ~AsyncEventTarget() = default;
  virtual void async_event(ibv_event_type type) = 0;
};

// The thread that reads the asynchronous events of one device: those of queue pairs go to their targets,
// those of ports and of the device into the log. Somebody has to acknowledge them, or nothing can be
// destroyed.
class AsyncEvents {
 public:
  // `context` outlives it.
  AsyncEvents(ibv_context* context, std::string device);
  ~AsyncEvents();
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;

 private:
  void run();
  void handle(const ibv_async_event& event);

  ibv_context* const context_;
  const std::string device_;
  FileDescriptor stop_;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace pnfsrdma::rdma::verbs
