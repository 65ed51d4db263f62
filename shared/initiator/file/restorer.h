// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include "shared/initiator/file/barrier.h"
#include "shared/initiator/file/through_mds.h"

namespace pnfsrdma::initiator {

// Servers that are restarted more often than this during one fsync or commit are not waited for.
inline constexpr int kRestorationsMax = 8;

// Writes again, through the MDS, what a restart of a server must not cost: growth whose layout was lost, and
// what the MDS has lost before COMMIT. Nobody else writes the file meanwhile, so that an old copy never comes
// over a newer write. It never flushes or commits: whoever does calls it. Waits for the MDS. Thread-safe;
// without a state of its own.
class Restorer {
 public:
  Restorer(FileState& file, Barrier& barrier, ThroughMds& through_mds, BufferPool& buffers)
      : file_(file), barrier_(barrier), through_mds_(through_mds), buffers_(buffers) {}

  // By whoever has claimed the commit. Error: nothing has changed, or (the server refused) the growth is
  // lost.
  Result<> restore_growth();
  void growth_lost(const Error& error);
  // The copies in these ranges; nobody else writes or truncates meanwhile. Error: nobody wants to know any
  // more, or (the server refused) they are lost.
  Result<> send_again(std::span<const FileRange> ranges);
  // The same of what has been held; durable at once if it is one range.
  Result<> send_held(std::span<const FileRange> ranges);

 private:
  Result<> write_kept();
  Result<> send_all(std::span<const FileRange> ranges, ThroughMds::Until until, ThroughMds::Under under);
  Result<> send_copies(FileRange rest, BufferSlice buffer, ThroughMds::Until until, ThroughMds::Under under);
  // Nobody writes by RDMA meanwhile: an old copy must not come over a newer write.
  Result<> behind_gate(const std::function<Result<>()>& work);

  FileState& file_;
  Barrier& barrier_;
  ThroughMds& through_mds_;
  BufferPool& buffers_;
};

}  // namespace pnfsrdma::initiator
