// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <list>

#include "fuse-client/fuse_header.h"
#include "fuse-client/mount_status.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"
#include "shared/initiator/data_path.h"

namespace pnfsrdma::fuse_client {

// The threads that serve FUSE requests. Each has a registered buffer for its life, receives a request into it
// and serves it to the end: no hand-over. One is started when all others are busy, up to the limit, so that
// there is always one to read an interrupt; they stay. One that has been at its request for long waits for a
// server that is silent, most likely: it does not count against the limit, so that requests to other servers
// get through; up to three times the limit. Owned by the mount.
class WorkerPool {
 public:
  // `counts` outlives it.
  WorkerPool(fuse_session* session, initiator::DataPath& data_path, WorkerCounts& counts,
             uint32_t threads_max);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Starts the first worker. ENOMEM and the like when its buffer can't be had.
  Result<> start();
  // Readable when the session has ended (unmounted, or aborted by the kernel).
  int ended_fd() const { return ended_.get(); }
  bool all_busy() const { return idle_ == 0; }
  // Every now and then: starts another worker when all are busy and some of them wait.
  void relieve();
  // Ends the workers: those that wait for requests at once, others when their request is served. False when
  // some were not through by `deadline`.
  bool stop(SteadyTime deadline);

 private:
  struct Worker {
    std::atomic<SteadyTime> busy_since = SteadyTime::max();
    Thread thread;
  };

  bool add_worker();
  // Under mutex_: how many there may be now.
  size_t limit() const;
  void work(Worker& worker, initiator::Buffer& buffer);
  void note_end();

  fuse_session* session_;
  initiator::DataPath& data_path_;
  const uint32_t threads_max_;
  FileDescriptor ended_;
  std::atomic<uint32_t>& idle_;
  std::atomic<uint32_t>& running_;
  Mutex mutex_;
  // Guarded by mutex_.
  std::list<Worker> workers_;
  bool stopping_ = false;
};

}  // namespace pnfsrdma::fuse_client
