// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "server/brickd/executor.h"
#include "server/brickd/flush_gate.h"
#include "server/brickd/pool.h"
#include "shared/brick/protocol.h"

namespace pnfsrdma::brick {

// persist, zero and copy: what an MDS has the brick do to bytes. Small ones that cannot block run at once,
// others in a thread, in the order they came; persists that wait there one behind the other are flushed as
// one, and fail as one. Blocks are pinned meanwhile. Owned by the Brick; control loop only.
class DataOperations {
 public:
  using Done = std::function<void(Status)>;

  DataOperations(EventLoop& loop, Pool& pool, FlushGate& gate);

  void persist(const RangesArguments& arguments, Done done);
  void zero(const RangesArguments& arguments, Done done);
  void copy(const CopyArguments& arguments, Done done);

  // Calls the worker has not finished.
  size_t waiting() const { return waiting_; }

  // From now on work queued under a lower epoch is refused instead of done; `done` when none of it runs any
  // more.
  void fence_epoch(uint64_t epoch, std::function<void()> done);

 private:
  using Pieces = std::vector<Piece>;
  using Work = std::function<Result<>()>;

  // Persists that share a flush. The thread takes them when it begins; who comes later is in the next batch.
  struct Persist {
    uint64_t epoch = 0;
    Pieces pieces;
    Done done;
    Result<> result;
  };
  struct Batch {
    std::vector<Persist> persists;
    uint64_t bytes = 0;
    bool begun = false;
  };
  using SharedBatch = std::shared_ptr<Guarded<Batch>>;

  std::expected<Pieces, Status> resolve(const std::vector<Range>& ranges) const;
  std::vector<ByteSpan> memory_of(const Pieces& pieces) const;
  Result<> copy_pieces(const Pieces& source, const Pieces& target) const;
  void run(uint64_t epoch, Pieces pinned, uint64_t bytes, Work work, Done done);
  bool join_batch(Persist& persist, uint64_t bytes);
  void begin_batch(Persist persist, uint64_t bytes);
  void flush(std::vector<Persist>& persists);
  void answer(const std::vector<Persist>& persists);

  Pool& pool_;
  FlushGate& gate_;
  std::atomic<uint64_t> epoch_;
  size_t waiting_ = 0;
  SharedBatch last_batch_;  // null: the last entry in the thread's queue is not a batch
  Executor executor_;
};

}  // namespace pnfsrdma::brick
