// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "server/mds/layout/file_space.h"
#include "shared/base/check.h"
#include "shared/base/log.h"

// The half of FileSpace that gives memory to files.
namespace pnfsrdma::mds {

// A hole, or a part of one, with the memory found for it.
struct FileSpace::Placed {
  Extent extent;
  bool clean = true;
  uint64_t blocks = 0;  // whole blocks from `block_base`, when it is not made of grains
  uint64_t block_base = 0;
};

struct FileSpace::Allocation {
  InodeId inode = kNoInode;
  AllocationPlan plan;
  bool wishing = true;  // placing plan.wished, not plan.needed
  Change change;
  std::vector<ByteRange> holes;  // still to place, the last one first
  std::vector<Placed> placed;
  Done done;
};

nfs4::Status status_of(brick::Status status) {
  switch (status) {
    case brick::Status::kOk:
      return nfs4::Status::kOk;
    case brick::Status::kNoSpace:
      return nfs4::Status::kNoSpc;
    case brick::Status::kTryLater:
    case brick::Status::kLimit:
    case brick::Status::kStaleEpoch:
      return nfs4::Status::kDelay;
    case brick::Status::kIo:
      return nfs4::Status::kIo;
    case brick::Status::kExists:
    case brick::Status::kNotFound:
    case brick::Status::kBusy:
    case brick::Status::kInvalid:
      break;
  }
  return nfs4::Status::kServerFault;
}

void FileSpace::allocate(InodeId inode, const AllocationPlan& plan, Change change, Done done) {
  auto work = std::make_shared<Allocation>(
      Allocation{.inode = inode, .plan = plan, .change = std::move(change), .done = std::move(done)});
  const ByteRange& range = plan.wished;
  const auto mapped = extents_.map(inode, range.begin, range.length());
  if (!mapped) return finish(work, status_of(mapped.error()));
  for (const Mapping& mapping : *mapped) {
    if (!mapping.logical) work->holes.push_back({mapping.file_offset, mapping.file_offset + mapping.length});
  }
  std::reverse(work->holes.begin(), work->holes.end());
  place_next(work);
}

void FileSpace::place_next(const std::shared_ptr<Allocation>& work) {
  if (work->holes.empty()) return zero_placed(work);
  const ByteRange hole = work->holes.back();
  work->holes.pop_back();
  if (hole.length() < kSmallFileMax || hole.end <= kSmallFileMax) return place_grains(work, hole);
  place_blocks(work, hole);
}

void FileSpace::place_blocks(const std::shared_ptr<Allocation>& work, const ByteRange& hole) {
  // The file's offsets keep their place within the block: a later neighbour then joins on, and a large file
  // is few extents.
  const uint64_t start = round_down(hole.begin, brick::kBlockSize);
  const uint64_t count = (round_up(hole.end, brick::kBlockSize) - start) / brick::kBlockSize;
  const auto base = space_.take_blocks(count);
  if (!base) return retreat(work, status_of(base.error()));
  // A crash from here on: blocks on the brick that no extent names. The next start frees them.
  brick_.alloc(*base, count,
               [this, alive = std::weak_ptr(alive_), work, hole, start, count,
                base = *base](BrickDevice::Answer<brick::RunsResult> answer) {
                 if (alive.expired()) return;
                 if (!answer) {
                   space_.give_up_blocks(base, count);
                   return retreat(work, status_of(answer.error()));
                 }
                 work->placed.push_back({.extent = {hole.begin, base + (hole.begin - start), hole.length()},
                                         .clean = true,
                                         .blocks = count,
                                         .block_base = base});
                 place_next(work);
               });
}

void FileSpace::place_grains(const std::shared_ptr<Allocation>& work, const ByteRange& hole) {
  const std::vector<Piece> pieces = space_.take_grains(hole.length());
  if (pieces.empty()) return take_shared_block(work, hole);
  uint64_t offset = hole.begin;
  for (const Piece& piece : pieces) {
    work->placed.push_back({.extent = {offset, piece.logical, piece.length}, .clean = piece.clean});
    offset += piece.length;
  }
  place_next(work);
}

void FileSpace::take_shared_block(const std::shared_ptr<Allocation>& work, const ByteRange& hole) {
  const auto base = space_.take_blocks(1);
  if (!base) return retreat(work, status_of(base.error()));
  brick_.alloc(
      *base, 1,
      [this, alive = std::weak_ptr(alive_), work, hole,
       base = *base](BrickDevice::Answer<brick::RunsResult> answer) {
        if (alive.expired()) return;
        if (!answer) {
          space_.give_up_blocks(base, 1);
          return retreat(work, status_of(answer.error()));
        }
        const Piece piece = space_.share_block(base, hole.length());
        work->placed.push_back({.extent = {hole.begin, piece.logical, piece.length}, .clean = piece.clean});
        place_next(work);
      });
}

void FileSpace::zero_placed(const std::shared_ptr<Allocation>& work) {
  std::vector<brick::Range> dirty;
  for (const Placed& placed : work->placed) {
    if (!placed.clean) dirty.push_back({placed.extent.logical, placed.extent.length});
  }
  if (dirty.empty()) return commit_placed(work);
  brick_.zero(dirty,
              [this, alive = std::weak_ptr(alive_), work](BrickDevice::Answer<brick::StatusResult> answer) {
                if (alive.expired()) return;
                if (!answer) return retreat(work, status_of(answer.error()));
                for (Placed& placed : work->placed) placed.clean = true;
                commit_placed(work);
              });
}

void FileSpace::commit_placed(const std::shared_ptr<Allocation>& work) {
  // No byte of another file is in what we commit: blocks come zeroed from the brick, grains were zeroed
  // above, durably.
  const auto inode = names_.get(work->inode);
  if (!inode) return retreat(work, inode.error());
  ExtentChange extents(store_, work->inode);
  for (const Placed& placed : work->placed) {
    if (const auto inserted = extents.insert(placed.extent); !inserted) {
      return retreat(work, status_of(inserted.error()));
    }
  }
  InodeUpdate update = work->change.update;
  update.space_used = (*inode)->space_used + static_cast<uint64_t>(extents.growth());
  Batch batch;
  extents.write_to(batch);
  batch.append(work->change.extra);
  const auto updated = names_.update(work->inode, update, batch, work->change.kind);
  if (!updated) return retreat(work, updated.error());
  if (work->change.kind == CommitKind::kState) lazy_behind_ = store_.last_namespace_sequence();
  for (const Placed& placed : work->placed) {
    if (placed.blocks == 0) continue;
    // What the hole does not take of the first and of the last block is for small files.
    const uint64_t end = placed.block_base + placed.blocks * brick::kBlockSize;
    if (placed.extent.logical > placed.block_base) {
      space_.free(placed.block_base, placed.extent.logical - placed.block_base);
    }
    if (placed.extent.logical_end() < end)
      space_.free(placed.extent.logical_end(), end - placed.extent.logical_end());
  }
  finish(work, nfs4::Status::kOk);
}

std::expected<void, nfs4::Status> FileSpace::make_durable() {
  if (lazy_behind_ && store_.last_namespace_sequence() == *lazy_behind_) {
    // Nothing new, but in order behind what was lazy.
    if (const auto committed = store_.commit(Batch(), CommitKind::kNamespace); !committed)
      return std::unexpected(status_of(committed.error()));
  }
  lazy_behind_.reset();
  return {};
}

// Gives back what was placed; then tries with less, if there is less.
void FileSpace::retreat(const std::shared_ptr<Allocation>& work, nfs4::Status status) {
  for (const Placed& placed : work->placed) {
    if (placed.blocks == 0) {
      free_blocks(space_.put_back({placed.extent.logical, placed.extent.length, placed.clean}));
      continue;
    }
    brick_.free({{placed.block_base, placed.blocks}});
    space_.give_up_blocks(placed.block_base, placed.blocks);
  }
  work->placed.clear();
  work->holes.clear();
  const bool may_shrink = work->wishing && work->plan.wished != work->plan.needed;
  if (!may_shrink || (status != nfs4::Status::kNoSpc && status != nfs4::Status::kDelay))
    return finish(work, status);
  const AllocationPlan less = halved(work->plan);
  allocate(work->inode, less, std::move(work->change), std::move(work->done));
}

void FileSpace::finish(const std::shared_ptr<Allocation>& work, nfs4::Status status) {
  // Moved out first: `done` may end the turn and with it the captures we stand on.
  const Done done = std::move(work->done);
  done(status);
}

}  // namespace pnfsrdma::mds
