// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <vector>

#include "server/mds/bricks/brick_set.h"
#include "server/mds/grants/range_set.h"
#include "server/mds/space/file_space.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// Has the bricks flush what a file has in some ranges, for COMMIT and LAYOUTCOMMIT. A sparse file may have as many
// extents as the bricks have grains: a turn of the loop looks at kExtentsPerBatch of them and at kRangesPerTurn
// ranges, and at the next ones when the flush of these has been answered.
//
// It takes no turn of the inode: whoever holds one may be waiting for the very client that flushes. So the file may
// change between two batches, and each batch looks at what is there by then. That is enough. Bytes that were written
// before the flush began have their extents by then and keep them: memory of a file moves only where others have it,
// too, and such memory is durable before they do, its copy as well. What is cut or
// punched meanwhile needs no flush any more, and what is written meanwhile is not of this one. A crash between two
// batches leaves some bytes flushed that nobody was told of, which is nothing a brick may not do by itself.
//
// Control loop only.
class RangePersister {
 public:
  using Done = std::function<void(nfs4::Status)>;
  static constexpr size_t kRangesPerTurn = 64;

  RangePersister(EventLoop& loop, KeyValueStore& store, BrickSet& bricks)
      : loop_(loop), store_(store), extents_(store), bricks_(bricks) {}
  RangePersister(const RangePersister&) = delete;
  RangePersister& operator=(const RangePersister&) = delete;

  // `done` when all of it is durable, once: OK, or DELAY or IO at the first batch that cannot be flushed. At once when
  // there is no memory in the ranges. `ranges` are in order and do not overlap. Not called when this has gone.
  void persist(InodeId inode, std::vector<ByteRange> ranges, Done done);

 private:
  struct Work;
  using WorkPointer = std::shared_ptr<Work>;
  // The memory to flush now, and where the next batch begins.
  struct Page {
    std::vector<brick::Range> memory;
    size_t range = 0;
    uint64_t offset = 0;
  };

  void next(const WorkPointer& work);
  std::expected<Page, nfs4::Status> page(const Work& work);
  void flush(const WorkPointer& work, const Page& page);

  EventLoop& loop_;
  KeyValueStore& store_;
  Extents extents_;
  BrickSet& bricks_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
