// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "shared/base/guarded.h"
#include "shared/base/sync.h"
#include "shared/rdma/verbs/handles.h"

namespace pnfsrdma::rdma::verbs {

// Who wants to hear of a queue pair's asynchronous events: its `qp_context` points to one, and so does the
// `cq_context` of its completion queue. Called in the event thread; the queue pair cannot be destroyed
// meanwhile (ibv_destroy_qp and ibv_destroy_cq wait for the acknowledgement).
class AsyncEventTarget {
 public:
  virtual ~AsyncEventTarget() = default;
  virtual void async_event(ibv_event_type type) = 0;
};

// The thread that reads the asynchronous events of one device: those of queue pairs and completion queues go
// to their targets, the end of the device to all of them, those of ports into the log. Somebody has to
// acknowledge them, or nothing can be destroyed.
class AsyncEvents {
 public:
  // `context` outlives it.
  AsyncEvents(ibv_context* context, std::string device);
  ~AsyncEvents();
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;

  // Whoever is told when the device breaks. After remove() it is not, nor being told. Thread-safe.
  void add(AsyncEventTarget* target) { targets_.lock()->insert(target); }
  void remove(AsyncEventTarget* target) { targets_.lock()->erase(target); }

  // What the thread does with each event.
  void handle(const ibv_async_event& event);

 private:
  void run();

  ibv_context* const context_;
  const std::string device_;
  Guarded<std::set<AsyncEventTarget*>> targets_;
  FileDescriptor stop_;
  Thread thread_;  // last: uses all of the above
};

}  // namespace pnfsrdma::rdma::verbs
