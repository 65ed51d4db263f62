// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/file_ranges.h"

#include <algorithm>
#include <utility>

#include "server/mds/meta/read_then.h"

namespace pnfsrdma::mds {

using nfs4::Status;

FileRanges::FileRanges(const Clock& clock, EventLoop& loop, Namespace& names, BrickSet& bricks,
                       FileSpace& space, LayoutTable& table, InodeQueue& queue, Layouts& layouts)
    : clock_(clock),
      loop_(loop),
      names_(names),
      bricks_(bricks),
      space_(space),
      table_(table),
      queue_(queue),
      layouts_(layouts) {}

// --- ALLOCATE

struct FileRanges::Allocating {
  Target target;
  ByteRange left;
  ByteRange slice;
  InodeQueue::Turn turn;
  Done done;
};

void FileRanges::allocate(const Target& target, const ByteRange& range, Done done) {
  if (range.end > kFileSizeMax) return done(Status::kFBig);
  next_slice(std::make_shared<Allocating>(
      Allocating{.target = target, .left = range, .slice = {}, .turn = {}, .done = std::move(done)}));
}

// Others get their turns between two slices.
void FileRanges::next_slice(const AllocatingPointer& work) {
  const uint64_t end = std::min(work->left.end, work->left.begin + kSliceBytes);
  work->slice = {work->left.begin, end};
  queue_.exclusive(work->target.inode, [this, work](InodeQueue::Turn turn) {
    work->turn = std::move(turn);
    const uint64_t inode = work->target.inode;
    read_then(
        names_.store(), lifetime_.token(), [this, work, inode] { return present(inode, work->left); },
        [this, work](const Outcome<InodePointer>& present) {
          if (!present) return end_slice(work, present.error());
          if (work->slice.end <= (*present)->size) return plan_slice(work);
          make_end_free(work, **present);
        });
  });
}

// All there is free, or allowed, and what the file has, would not do: nothing is to be begun. Only reads.
Outcome<InodePointer> FileRanges::present(uint64_t inode, const ByteRange& range) {
  TRY_ASSIGN(InodePointer present, names_.get(inode));
  const uint64_t missing = range.length() - std::min(range.length(), present->space_used + kGrainSize);
  uint64_t free = 0;
  for (BrickDevice* const brick : bricks_.all()) free += brick->space().unused_bytes();
  if (missing > free) return std::unexpected(Status::kNoSpc);
  const auto allowed = names_.quotas().space_left(*present, clock_.wall_now());
  if (!allowed) return std::unexpected(status_of(allowed.error()));
  if (missing > allowed->bytes) return std::unexpected(Status::kDQuot);
  return present;
}

// The file grows: as for a WRITE that leaves a gap, those who may write behind the end leave first, and zeros are
// what they leave.
void FileRanges::make_end_free(const AllocatingPointer& work, const Inode& present) {
  const uint64_t inode = work->target.inode;
  layouts_.clear_writers(inode, present.size, work->target.client, [this, work, inode](bool cleared) {
    if (!cleared) return end_slice(work, Status::kDelay);
    if (!layouts_.drop_end(inode, work->target.client)) return end_slice(work, Status::kDelay);
    space_.clean_tail(inode, [this, work](Status cleaned) {
      if (cleaned != Status::kOk) return end_slice(work, cleaned);
      plan_slice(work);
    });
  });
}

void FileRanges::plan_slice(const AllocatingPointer& work) {
  space_.absence(work->target.inode, work->slice, lifetime_.guard([this, work](Status absent) {
    if (absent != Status::kOk) return end_slice(work, absent);
    shorten_slice(work);
  }));
}

// Where the file has many extents with holes between them, the turn is over before the bytes are.
void FileRanges::shorten_slice(const AllocatingPointer& work) {
  read_then(
      names_.store(), lifetime_.token(),
      [this, work] {
        return space_.extents().overlapping(work->target.inode, work->slice.begin, work->slice.length(),
                                            kExtentsPerTurn);
      },
      [this, work](const Result<std::vector<Extent>>& extents) {
        if (!extents) return end_slice(work, status_of(extents.error()));
        if (extents->size() == kExtentsPerTurn)
          work->slice.end = std::min(work->slice.end, extents->back().end());
        plan_present_slice(work);
      });
}

// What other files have too would need memory when it is written.
void FileRanges::plan_present_slice(const AllocatingPointer& work) {
  read_then(
      names_.store(), lifetime_.token(),
      [this, work] { return space_.to_unshare(work->target.inode, work->slice, kExtentsPerTurn); },
      [this, work](const Outcome<ByteRange>& stretch) {
        if (!stretch) return end_slice(work, stretch.error());
        if (stretch->empty()) return plan_own_slice(work);
        layouts_.clear(work->target.inode, *stretch, work->target.client,
                       [this, work, stretch = *stretch](bool cleared) {
                         if (!cleared) return end_slice(work, Status::kDelay);
                         space_.unshare(work->target.inode, work->slice, stretch,
                                        [this, work](Status status) {
                                          if (status != Status::kOk) return end_slice(work, status);
                                          plan_present_slice(work);
                                        });
                       });
      });
}

void FileRanges::plan_own_slice(const AllocatingPointer& work) {
  using Plan = std::expected<AllocationPlan, Status>;
  read_then(
      names_.store(), lifetime_.token(),
      [this, work] { return space_.plan(work->target.inode, work->slice, work->slice.end); },
      [this, work](const Plan& plan) {
        if (!plan) return end_slice(work, plan.error());
        // Whoever reads zeros from a hole there must ask again.
        layouts_.clear_holes(work->target.inode, plan->wished, 0, [this, work, plan = *plan](bool cleared) {
          if (!cleared) return end_slice(work, Status::kDelay);
          fill_slice(work, plan);
        });
      });
}

void FileRanges::fill_slice(const AllocatingPointer& work, const AllocationPlan& plan) {
  // Raised to what the file has by then: never less.
  FileSpace::Change change{.scattered = true};
  change.update.mtime = clock_.wall_now();
  change.update.clear_setid = work->target.clear_setid;
  change.update.size = work->slice.end;
  space_.allocate(work->target.inode, plan, std::move(change),
                  [this, work](Status status) { end_slice(work, status); });
}

void FileRanges::end_slice(const AllocatingPointer& work, Status status) {
  work->turn.reset();
  work->left.begin = work->slice.end;
  if (status != Status::kOk || work->left.empty()) return std::exchange(work->done, nullptr)(status);
  loop_.at_next_turn(lifetime_.guard([this, work] { next_slice(work); }));
}

// --- DEALLOCATE

void FileRanges::deallocate(const Target& target, const ByteRange& range, Done done) {
  // Whoever could write there cannot be asked either: before the wait for them.
  const auto begin = [this, target, range, done = std::move(done)](Status absent) {
    if (absent != Status::kOk) return done(absent);
    queue_.exclusive(target.inode, [this, target, range, done](const InodeQueue::Turn& turn) {
      layouts_.clear(target.inode, grains_of(range), target.client,
                     [this, target, range, turn, done](bool cleared) {
                       if (!cleared) return done(Status::kDelay);
                       punch(target, range, turn, done);
                     });
    });
  };
  space_.absence(target.inode, range, lifetime_.guard(begin));
}

// Its layouts are gone, and what they held is in the size.
void FileRanges::punch(const Target& target, const ByteRange& range, const InodeQueue::Turn& turn,
                       const Done& done) {
  space_.absence(target.inode, range, lifetime_.guard([this, target, range, turn, done](Status absent) {
    if (absent != Status::kOk) return done(absent);
    punch_present(target, range, turn, done);
  }));
}

void FileRanges::punch_present(const Target& target, const ByteRange& range, const InodeQueue::Turn& turn,
                               const Done& done) {
  read_then(
      names_.store(), lifetime_.token(), [this, target] { return names_.get(target.inode); },
      [this, target, range, turn, done](const Outcome<InodePointer>& present) {
        if (!present) return done(present.error());
        const ByteRange inside{range.begin, std::min(range.end, (*present)->size)};
        if (inside.empty()) return done(Status::kOk);
        space_.punch(target.inode, inside, {.mtime = clock_.wall_now(), .clear_setid = target.clear_setid},
                     [turn, done](Status status) { done(status); });
      });
}

// --- SEEK

struct FileRanges::Seeking {
  uint64_t inode = 0;
  uint64_t at = 0;  // up to here it has looked
  nfs4::ContentType what = nfs4::ContentType::kData;
  Found done;
};

void FileRanges::seek(uint64_t inode, uint64_t offset, nfs4::ContentType what, Found done) {
  seek_on(std::make_shared<Seeking>(
      Seeking{.inode = inode, .at = offset, .what = what, .done = std::move(done)}));
}

void FileRanges::seek_on(const std::shared_ptr<Seeking>& work) {
  struct Page {
    uint64_t size = 0;
    std::vector<Extent> extents;
  };
  using Look = std::expected<Page, Status>;
  const auto look = [this, work]() -> Look {
    TRY_ASSIGN(const InodePointer present, names_.get(work->inode));
    if (work->at >= present->size) return std::unexpected(Status::kNxIo);
    auto extents =
        space_.extents().overlapping(work->inode, work->at, present->size - work->at, kExtentsPerTurn);
    if (!extents) return std::unexpected(status_of(extents.error()));
    return Page{present->size, *std::move(extents)};
  };
  read_then(names_.store(), lifetime_.token(), look, [this, work](const Look& page) {
    if (!page) return work->done(std::unexpected(page.error()));
    const auto found = [&](uint64_t offset) {
      const bool end = offset >= page->size;
      work->done(nfs4::SeekResult{end, end ? page->size : offset});
    };
    if (work->what == nfs4::ContentType::kData)
      return found(page->extents.empty() ? page->size
                                         : std::max(work->at, page->extents.front().file_offset));
    for (const Extent& extent : page->extents) {
      if (extent.file_offset > work->at) return found(work->at);
      work->at = extent.end();
    }
    if (page->extents.size() < kExtentsPerTurn || work->at >= page->size) return found(work->at);
    loop_.at_next_turn(lifetime_.guard([this, work] { seek_on(work); }));
  });
}

}  // namespace pnfsrdma::mds
