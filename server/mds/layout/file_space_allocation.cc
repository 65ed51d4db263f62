// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
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
  AllocationPlan asked;            // of the caller
  AllocationPlan plan;             // what is tried now: all of it, or less
  std::deque<BrickNumber> places;  // the first one is tried now
  Change change;
  std::vector<ByteRange> holes;  // still to place, the last one first
  std::vector<Placed> placed;
  Done done;
};

void FileSpace::allocate(InodeId inode, const AllocationPlan& plan, Change change, Done done) {
  auto work = std::make_shared<Allocation>(Allocation{
      .inode = inode, .asked = plan, .plan = plan, .change = std::move(change), .done = std::move(done)});
  const auto order = places(inode, plan.needed.begin);
  if (!order) return finish(work, order.error());
  work->places.assign(order->begin(), order->end());
  begin_placing(work);
}

// The file's brick is that of the memory in front, or of any other that it has.
std::expected<std::vector<BrickNumber>, nfs4::Status> FileSpace::places(InodeId inode, uint64_t begin) {
  auto near = extents_.overlapping(inode, begin - std::min<uint64_t>(begin, 1), 1);
  if (!near) return std::unexpected(status_of(near.error()));
  if (near->empty()) {
    const auto first = extents_.first(inode);
    if (!first) return std::unexpected(status_of(first.error()));
    if (*first) near->push_back(**first);
  }
  return bricks_.places(inode, near->empty() ? kNoBrick : bricks_.at(near->front().logical).number());
}

void FileSpace::begin_placing(const std::shared_ptr<Allocation>& work) {
  const ByteRange& range = work->plan.wished;
  const auto mapped = extents_.map(work->inode, range.begin, range.length());
  if (!mapped) return finish(work, status_of(mapped.error()));
  for (const Mapping& mapping : *mapped) {
    if (!mapping.logical) work->holes.push_back({mapping.file_offset, mapping.file_offset + mapping.length});
  }
  std::reverse(work->holes.begin(), work->holes.end());
  place_next(work);
}

void FileSpace::place_next(const std::shared_ptr<Allocation>& work) {
  if (work->holes.empty()) return zero_placed(work);
  // Removed while we waited; there is nothing of ours on it.
  if (bricks_.find(work->places.front()) == nullptr) return retreat(work, nfs4::Status::kDelay);
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
  BrickDevice& brick = *bricks_.find(work->places.front());
  if (brick.space().used_blocks() + count > brick.record().block_count)
    return retreat(work, nfs4::Status::kNoSpc);
  const auto base = brick.space().take_blocks(count);
  if (!base) return retreat(work, status_of(base.error()));
  // A crash from here on: blocks on the brick that no extent names. The next start frees them.
  brick.alloc(*base, count,
              [this, alive = std::weak_ptr(alive_), work, hole, start, count,
               base = *base](BrickDevice::Answer<brick::RunsResult> answer) {
                if (alive.expired()) return;
                if (!answer) {
                  bricks_.space_at(base).give_up_blocks(base, count);
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
  const std::vector<Piece> pieces = bricks_.find(work->places.front())->space().take_grains(hole.length());
  if (pieces.empty()) return take_shared_block(work, hole);
  uint64_t offset = hole.begin;
  for (const Piece& piece : pieces) {
    work->placed.push_back({.extent = {offset, piece.logical, piece.length}, .clean = piece.clean});
    offset += piece.length;
  }
  place_next(work);
}

void FileSpace::take_shared_block(const std::shared_ptr<Allocation>& work, const ByteRange& hole) {
  BrickDevice& brick = *bricks_.find(work->places.front());
  const auto base = brick.space().take_blocks(1);
  if (!base) return retreat(work, status_of(base.error()));
  brick.alloc(
      *base, 1,
      [this, alive = std::weak_ptr(alive_), work, hole,
       base = *base](BrickDevice::Answer<brick::RunsResult> answer) {
        if (alive.expired()) return;
        if (!answer) {
          bricks_.space_at(base).give_up_blocks(base, 1);
          return retreat(work, status_of(answer.error()));
        }
        const Piece piece = bricks_.space_at(base).share_block(base, hole.length());
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
  bricks_.zero(dirty, [this, alive = std::weak_ptr(alive_), work](nfs4::Status status) {
    if (alive.expired()) return;
    if (status != nfs4::Status::kOk) return retreat(work, status);
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
    Space& space = bricks_.space_at(placed.block_base);
    const uint64_t end = placed.block_base + placed.blocks * brick::kBlockSize;
    if (placed.extent.logical > placed.block_base) {
      space.free(placed.block_base, placed.extent.logical - placed.block_base);
    }
    if (placed.extent.logical_end() < end)
      space.free(placed.extent.logical_end(), end - placed.extent.logical_end());
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

// Gives back what was placed; then tries with less, if there is less, then with the next brick.
void FileSpace::retreat(const std::shared_ptr<Allocation>& work, nfs4::Status status) {
  for (const Placed& placed : work->placed) {
    Space& space = bricks_.space_at(placed.extent.logical);
    if (placed.blocks == 0) {
      bricks_.free(space.put_back({placed.extent.logical, placed.extent.length, placed.clean}));
      continue;
    }
    bricks_.at(placed.block_base).free({{placed.block_base, placed.blocks}});
    space.give_up_blocks(placed.block_base, placed.blocks);
  }
  work->placed.clear();
  work->holes.clear();
  const bool short_of_space = status == nfs4::Status::kNoSpc || status == nfs4::Status::kDelay;
  if (short_of_space && work->plan.wished != work->plan.needed) {
    work->plan = halved(work->plan);
    return begin_placing(work);
  }
  // Only a brick that is full sends a file to another one.
  if (status != nfs4::Status::kNoSpc || work->places.size() == 1) return finish(work, status);
  work->places.pop_front();
  work->plan = work->asked;
  begin_placing(work);
}

void FileSpace::finish(const std::shared_ptr<Allocation>& work, nfs4::Status status) {
  // Moved out first: `done` may end the turn and with it the captures we stand on.
  const Done done = std::move(work->done);
  done(status);
}

}  // namespace pnfsrdma::mds
