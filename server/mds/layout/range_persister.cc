// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/range_persister.h"

#include <algorithm>
#include <utility>

#include "server/mds/meta/read_then.h"

namespace pnfsrdma::mds {

struct RangePersister::Work {
  InodeId inode = kNoInode;
  std::vector<ByteRange> ranges;
  Done done;
  // Up to here all is flushed: a place in `ranges`, and an offset in the file.
  size_t range = 0;
  uint64_t offset = 0;

  bool ended() const { return range == ranges.size(); }
};

void RangePersister::persist(InodeId inode, std::vector<ByteRange> ranges, Done done) {
  const auto work = std::make_shared<Work>();
  work->inode = inode;
  work->ranges = std::move(ranges);
  work->done = std::move(done);
  next(work);
}

void RangePersister::next(const WorkPointer& work) {
  if (work->ended()) return std::exchange(work->done, nullptr)(nfs4::Status::kOk);
  read_then(
      store_, lifetime_.token(), [this, work] { return page(*work); },
      [this, work](const std::expected<Page, nfs4::Status>& page) {
        if (!page) return std::exchange(work->done, nullptr)(page.error());
        flush(work, *page);
      });
}

// Only reads.
std::expected<RangePersister::Page, nfs4::Status> RangePersister::page(const Work& work) {
  Page page{.memory = {}, .range = work.range, .offset = work.offset};
  const size_t last = std::min(work.ranges.size(), work.range + kRangesPerTurn);
  while (page.range < last) {
    const ByteRange& range = work.ranges[page.range];
    const ByteRange left{std::max(range.begin, page.offset), range.end};
    const size_t room = kExtentsPerBatch - page.memory.size();
    const auto extents = extents_.overlapping(work.inode, left.begin, left.length(), room);
    if (!extents) return std::unexpected(status_of(extents.error()));
    for (const Extent& extent : *extents) {
      const ByteRange part = intersection({extent.file_offset, extent.end()}, left);
      page.memory.push_back({extent.logical + (part.begin - extent.file_offset), part.length()});
    }
    if (extents->size() == room) {
      page.offset = std::min(extents->back().end(), range.end);
      if (page.offset == range.end) ++page.range;
      break;
    }
    ++page.range;
  }
  return page;
}

void RangePersister::flush(const WorkPointer& work, const Page& page) {
  work->range = page.range;
  work->offset = page.offset;
  if (page.memory.empty()) {
    if (work->ended()) return next(work);
    return loop_.at_next_turn(lifetime_.guard([this, work] { next(work); }));
  }
  if (const nfs4::Status absent = bricks_.absence(page.memory); absent != nfs4::Status::kOk)
    return std::exchange(work->done, nullptr)(absent);
  bricks_.persist(page.memory, lifetime_.guard([this, work](nfs4::Status status) {
    if (status != nfs4::Status::kOk) return std::exchange(work->done, nullptr)(status);
    next(work);
  }));
}

}  // namespace pnfsrdma::mds
