// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <list>
#include <optional>

#include "fuse-client/data_request.h"
#include "fuse-client/device_lines.h"
#include "fuse-client/fuse_header.h"
#include "fuse-client/inode_table.h"
#include "fuse-client/mount_options.h"
#include "fuse-client/mount_status.h"
#include "shared/base/guarded.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"
#include "shared/initiator/data_path.h"

namespace pnfsrdma::fuse_client {

// The threads that serve FUSE requests. Each has a registered buffer for its life, receives a request into it
// and serves it to the end: no hand-over. One is started when all others are busy, up to the limit, so that
// there is always one to read an interrupt; they stay.
//
// A worker that has been at its request for long waits for a server that is silent, most likely: it does not
// count against the limit, so that requests to other servers get through; up to three times the limit. And
// where a quarter of the limit waits for one device, what else comes for it is parked (DeviceLines). That is
// looked at by a thread of its own, which sleeps while a worker is idle. Owned by the mount.
class WorkerPool {
 public:
  // What it needs outlives it.
  struct Parts {
    fuse_session* session;
    initiator::DataPath& data_path;
    const InodeTable& inodes;
    WorkerCounts& counts;
    const MountOptions& options;
  };

  explicit WorkerPool(const Parts& parts);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Starts the first worker. ENOMEM and the like when its buffer can't be had.
  Result<> start();
  // Readable when the session has ended (unmounted, or aborted by the kernel).
  int ended_fd() const { return ended_.get(); }
  bool all_busy() const { return parts_.counts.idle == 0; }
  // Ends the workers: those that wait for requests at once, others when their request is served. False when
  // some were not through by `deadline`.
  bool stop(SteadyTime deadline);

 private:
  // What a worker is at.
  struct Task {
    SteadyTime since = SteadyTime::max();
    // The file and its bytes, of a request that may wait for bricks.
    std::shared_ptr<Inode> inode;
    std::optional<initiator::FileRange> range;
    bool in_line = false;  // DeviceLines knows it
  };
  struct Worker {
    Guarded<Task> task;
    Thread thread;
  };

  bool add_worker();
  // Under mutex_: how many there may be now.
  size_t limit();
  void work(Worker& worker, initiator::Buffer& buffer);
  void serve(Worker& worker, initiator::Buffer& buffer, size_t size);
  void begin_task(Worker& worker, ByteSpan message);
  // The next one of the line this worker is at.
  std::optional<DeviceLines::Parked> end_task(Worker& worker);
  // True: it is parked, or refused.
  bool put_off(ByteSpan message);
  void note_end();

  void watch();
  void wake_watch();
  void find_held_up();
  void end_parked();

  const Parts parts_;
  FileDescriptor ended_;
  DeviceLines lines_;
  std::atomic<bool> crowded_ = false;
  Mutex mutex_;
  Condition watched_;
  // Guarded by mutex_.
  std::list<Worker> workers_;
  bool stopping_ = false;
  Thread watch_;
};

}  // namespace pnfsrdma::fuse_client
