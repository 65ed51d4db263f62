// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "server/brickd/executor.h"
#include "server/brickd/flush_gate.h"
#include "server/brickd/pool.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/brick/protocol.h"

namespace pnfsrdma::brick {

// Makes changes of superblock and table durable, one after the other: a change runs when the one before it is
// on the medium (an entry's two halves must never both be in flight), and is answered when it is itself.
// Where a flush waits for a disk, a thread of its own does it. Owned by the Brick; control loop only.
class Committer {
 public:
  // Decides, stores, and says which superblock bytes it touched besides the table's.
  struct Outcome {
    Status status = Status::kOk;
    ByteSpan superblock{};
  };
  using Change = std::function<Outcome()>;
  using Done = std::function<void(Status)>;

  Committer(EventLoop& loop, Pool& pool, FlushGate& gate);

  // `done` is called from the loop at the end of a turn or later, never from inside. A flush that fails
  // answers kIo, and so does every change behind it: what the medium holds is then unknown, only a restart
  // reads it again.
  void submit(Change change, Done done);
  bool failed() const { return failed_; }
  size_t waiting() const { return waiting_.size(); }

 private:
  struct Pending {
    Change change;
    Done done;
  };

  void run_next();
  void finish(const Result<>& flushed, Status status, const Done& done);

  EventLoop& loop_;
  Pool& pool_;
  FlushGate& gate_;
  std::deque<Pending> waiting_;
  bool busy_ = false;
  bool failed_ = false;
  // Behind what its jobs use.
  std::unique_ptr<Executor> executor_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::brick
