// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "server/brickd/executor.h"
#include "shared/base/bytes.h"
#include "shared/base/event_loop.h"

namespace pnfsrdma::brick {

class Pool;

// Blocks of a plain file into the page cache before a client reads them: the kernel reads single pages there
// (pmem::Mapping). Once in the life of the process; what the kernel drops later is read page by page. Waits for
// the disk, so a thread does it; other pools have none. Owned by the Brick; control loop only.
class ReadAhead {
 public:
  ReadAhead(EventLoop& loop, const Pool& pool);

  // A client is granted this part of the pool.
  void granted(ByteSpan memory);

 private:
  const Pool& pool_;
  std::vector<bool> read_;  // blocks
  std::unique_ptr<Executor> executor_;
};

}  // namespace pnfsrdma::brick
