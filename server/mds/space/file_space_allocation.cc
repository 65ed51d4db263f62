// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include "server/mds/meta/read_then.h"
#include "server/mds/space/file_allocation.h"

// The half of FileSpace that gives memory to files.
namespace pnfsrdma::mds {

namespace {

// Of what is free, this part at most goes ahead of a file: what is ahead shrinks as a brick, or a quota, fills up.
constexpr uint64_t kAheadOfFree = 16;

nfs4::Status shortage(const Error& error) {
  return error.number() == EMLINK ? nfs4::Status::kLayoutTryLater : status_of(error);
}

}  // namespace

std::expected<AllocationPlan, nfs4::Status> FileSpace::plan(InodeId inode, const ByteRange& needed,
                                                            uint64_t wish_end) {
  TRY_ASSIGN(const InodePointer present, names_.get(inode));
  Growth growth{
      .needed = needed, .wish_end = wish_end, .size = present->size, .space_used = present->space_used};
  const uint64_t begin = grains_of(needed).begin;
  if (begin > 0) {
    const auto before = extents_.overlapping(inode, begin - 1, 1);
    if (!before) return std::unexpected(status_of(before.error()));
    if (!before->empty()) growth.in_front = begin - before->front().file_offset;
  }
  return plan_allocation(growth);
}

void FileSpace::allocate(InodeId inode, const AllocationPlan& plan, Change change, Done done) {
  auto work = std::make_shared<Allocation>(Allocation{.inode = inode,
                                                      .plan = plan,
                                                      .change = std::move(change),
                                                      .done = std::move(done),
                                                      .range = plan.wished});
  begin_anew(work);
}

void FileSpace::begin_anew(const AllocationPointer& work) {
  // Where the bytes are has to be written down, too.
  if (names_.store().room().full) return finish(work, nfs4::Status::kNoSpc);
  using Order = std::expected<std::deque<BrickNumber>, nfs4::Status>;
  read_then(
      store_, lifetime_.token(), [this, work] { return places(work->inode, work->plan.needed.begin); },
      [this, work](Order order) {
        if (!order) return finish(work, order.error());
        work->places = *std::move(order);
        begin_placing(work);
      });
}

// The file's brick is that of the memory in front, or of any other that it has.
std::expected<std::deque<BrickNumber>, nfs4::Status> FileSpace::places(InodeId inode, uint64_t begin) {
  auto near = extents_.overlapping(inode, begin - std::min<uint64_t>(begin, 1), 1);
  if (!near) return std::unexpected(status_of(near.error()));
  if (near->empty()) {
    const auto first = extents_.first(inode);
    if (!first) return std::unexpected(status_of(first.error()));
    if (*first) near->push_back(**first);
  }
  const auto order =
      bricks_.places(inode, near->empty() ? kNoBrick : bricks_.at(near->front().logical).number());
  if (!order) return std::unexpected(order.error());
  return std::deque<BrickNumber>(order->begin(), order->end());
}

void FileSpace::begin_placing(const AllocationPointer& work) {
  // From the byte in front.
  const uint64_t begin = work->range.begin - std::min<uint64_t>(work->range.begin, 1);
  if (work->unshares) return place_copies(work);
  read_then(
      store_, lifetime_.token(), [this, work, begin] { return look(*work, begin); },
      [this, work](const std::expected<Look, nfs4::Status>& look) {
        if (!look) return finish(work, look.error());
        work->allowed = look->allowed;
        find_holes(work, look->mapped);
      });
}

// Only reads.
std::expected<FileSpace::Look, nfs4::Status> FileSpace::look(const Allocation& work, uint64_t begin) {
  TRY_ASSIGN(const InodePointer inode, names_.get(work.inode));
  const auto allowed = names_.quotas().space_left(*inode, clock_.wall_now());
  if (!allowed) return std::unexpected(status_of(allowed.error()));
  auto mapped = extents_.map(work.inode, begin, work.range.end - begin);
  if (!mapped) return std::unexpected(status_of(mapped.error()));
  return Look{.mapped = *std::move(mapped), .allowed = *allowed};
}

void FileSpace::find_holes(const AllocationPointer& work, const std::vector<Mapping>& mapped) {
  std::optional<uint64_t> in_front;
  uint64_t needed = 0;
  for (const Mapping& mapping : mapped) {
    const ByteRange range{std::max(mapping.file_offset, work->range.begin),
                          mapping.file_offset + mapping.length};
    if (!mapping.logical && !range.empty()) {
      work->holes.push_back({.range = range, .in_front = in_front});
      needed += intersection(range, work->plan.needed).length();
    }
    in_front = mapping.logical ? std::optional(*mapping.logical + mapping.length) : std::nullopt;
  }
  work->missing = needed;
  if (needed > work->allowed.bytes) return retreat(work, nfs4::Status::kDQuot);
  work->allowed.bytes -= needed;
  std::reverse(work->holes.begin(), work->holes.end());
  place_next(work);
}

void FileSpace::place_next(const AllocationPointer& work) {
  while (!work->holes.empty()) {
    if (work->places.empty()) return retreat(work, nfs4::Status::kNoSpc);
    BrickDevice* const brick = bricks_.find(work->places.front());
    // Removed while we waited; there is nothing of ours on it.
    if (brick == nullptr) return retreat(work, nfs4::Status::kDelay);
    Hole hole = work->holes.back();
    if (const uint64_t free = brick->space().free_bytes(); work->shared && free < hole.range.length()) {
      work->places.pop_front();
      if (free == 0) continue;
      hole.range.end = hole.range.begin + free;
    }
    if (hole.range.end == work->holes.back().range.end) {
      work->holes.pop_back();
    } else {
      const uint64_t middle = hole.range.end;
      work->holes.back() = {.range = {middle, work->holes.back().range.end},
                            .shared = hole.shared_at(middle)};
    }
    if (!take(work, *brick, hole)) return;
  }
  zero_placed(work);
}

GrainRequest FileSpace::request_for(const AllocationPointer& work, BrickDevice& brick, const Hole& hole) {
  const ByteRange& range = hole.range;
  GrainRequest request{.scattered = work->change.scattered};
  const uint64_t hard_end = std::clamp(work->plan.needed.end, range.begin, range.end);
  request.hard = (hard_end - range.begin) / kGrainSize;
  const uint64_t ahead = std::min(brick.space().free_bytes(), work->allowed.bytes) / kAheadOfFree;
  request.soft = std::min(range.end - hard_end, ahead) / kGrainSize;
  work->allowed.bytes -= std::min(work->allowed.bytes, request.soft * kGrainSize);
  if (hole.in_front && &bricks_.at(*hole.in_front - 1) == &brick) request.goal = *hole.in_front;
  return request;
}

// False: the brick is asked for fresh blocks, and it goes on with its answer; or it has retreated.
bool FileSpace::take(const AllocationPointer& work, BrickDevice& brick, const Hole& hole) {
  const auto taken = brick.space().take(request_for(work, brick, hole));
  if (!taken) {
    retreat(work, shortage(taken.error()));
    return false;
  }
  if (!taken->fresh) {
    allocated(work, hole, *taken);
    return true;
  }
  // A crash from here on: blocks on the brick that no extent names. The next start frees them.
  brick.alloc(taken->fresh->logical, taken->fresh->count,
              lifetime_.guard([this, work, number = brick.number(), hole,
                               taken = *taken](BrickDevice::Answer<brick::RunsResult> answer) {
                if (!answer) return not_allocated(work, number, taken, answer.error());
                bricks_.space_at(taken.fresh->logical).allocated(*taken.fresh);
                allocated(work, hole, taken);
                place_next(work);
              }));
  return false;
}

void FileSpace::allocated(const AllocationPointer& work, const Hole& hole, const Taken& taken) {
  uint64_t offset = hole.range.begin;
  for (const Piece& piece : taken.pieces) {
    work->placed.push_back({.file_offset = offset, .piece = piece, .shared = hole.shared_at(offset)});
    offset += piece.length;
  }
}

void FileSpace::not_allocated(const AllocationPointer& work, BrickNumber number, Taken taken,
                              brick::Status why) {
  const brick::Run fresh = *taken.fresh;
  Space& space = bricks_.space_at(fresh.logical);
  std::erase_if(taken.pieces, [&](const Piece& piece) {
    return piece.logical >= fresh.logical && piece.logical < fresh.logical + fresh.count * brick::kBlockSize;
  });
  bricks_.free(space.put_back(taken.pieces));
  if (why != brick::Status::kNoSpace) {
    space.refused(fresh);
    return retreat(work, status_of(why));
  }
  if (bricks_.freeing(number)) {
    space.refused(fresh);
    return retreat(work, nfs4::Status::kDelay);
  }
  // Some of its blocks are damaged: what there is besides may do.
  space.lacks(fresh);
  give_back(work);
  begin_anew(work);
}

void FileSpace::zero_placed(const AllocationPointer& work) {
  if (work->unshares) return copy_placed(work, 0);
  std::vector<brick::Range> dirty;
  for (const Placed& placed : work->placed) {
    if (!placed.piece.clean) dirty.push_back({placed.piece.logical, placed.piece.length});
  }
  if (dirty.empty()) return commit_placed(work);
  bricks_.zero(dirty, lifetime_.guard([this, work](nfs4::Status status) {
    if (status != nfs4::Status::kOk) return retreat(work, status);
    for (Placed& placed : work->placed) placed.piece.clean = true;
    commit_placed(work);
  }));
}

void FileSpace::commit_placed(const AllocationPointer& work) {
  read_then(
      store_, lifetime_.token(), [this, work] { return placing(*work); },
      [this, work](const std::expected<Placing, nfs4::Status>& placing) {
        if (!placing) return retreat(work, placing.error());
        commit_extents(work, *placing);
      });
}

// Only reads.
std::expected<FileSpace::Placing, nfs4::Status> FileSpace::placing(const Allocation& work) {
  TRY_ASSIGN(InodePointer inode, names_.get(work.inode));
  names_.quotas().bring(*inode);
  Placing placing{.inode = std::move(inode),
                  .extents = ExtentChange(store_, work.inode),
                  .unnaming = {.shares = SharedChange(store_), .free = {}, .dead = {}}};
  for (const Placed& placed : work.placed) {
    if (placed.shared) TRY(replace_shared(placed, placing));
    const Extent extent{placed.file_offset, placed.piece.logical, placed.piece.length,
                        names_.snapshots().now()};
    if (const auto inserted = placing.extents.insert(extent); !inserted)
      return std::unexpected(status_of(inserted.error()));
    placing.end = std::max(placing.end, extent.end());
  }
  return placing;
}

void FileSpace::commit_extents(const AllocationPointer& work, const Placing& placing) {
  // No byte of another file is in what we commit: blocks come zeroed from the brick, grains were zeroed
  // above, durably.
  InodeUpdate update = work->change.update;
  // Memory comes with growth only; and a LAYOUTCOMMIT, which waits for no turn, may have grown the file further
  // meanwhile.
  if (update.size) update.size = std::max(*update.size, placing.inode->size);
  update.space_used = placing.inode->space_used + static_cast<uint64_t>(placing.extents.growth());
  const bool ahead = placing.end > kept_end(update.size.value_or(placing.inode->size));
  const bool on_record = ahead && placing.end > work->plan.needed.end;
  Batch batch;
  placing.extents.write_to(batch);
  placing.unnaming.write_to(batch);
  batch.append(work->change.extra);
  if (on_record) ahead_.put_on_record(batch, work->inode);
  const auto updated = names_.update(work->inode, update, batch, work->change.kind);
  if (!updated) return retreat(work, updated.error());
  if (ahead) ahead_.enter(work->inode, on_record, names_.quotas().counted_owners(*placing.inode));
  if (work->unshares) free_when_synced(placing.unnaming, [] {});
  if (work->change.kind == CommitKind::kState) lazy_behind_ = store_.last_namespace_sequence();
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

void FileSpace::give_back(const AllocationPointer& work) {
  for (const Placed& placed : work->placed) {
    Space& space = bricks_.space_at(placed.piece.logical);
    bricks_.free(placed.touched ? space.free(placed.piece.logical, placed.piece.length)
                                : space.put_back({placed.piece}));
  }
  work->placed.clear();
  work->holes.clear();
}

// Tries with what is needed alone, then the next brick, then all of them together; then what is ahead of
// files.
void FileSpace::retreat(const AllocationPointer& work, nfs4::Status status) {
  give_back(work);
  const bool scattered = status == nfs4::Status::kLayoutTryLater;
  const bool full = status == nfs4::Status::kNoSpc || scattered;
  work->scattered = work->scattered || scattered;
  const bool over = status == nfs4::Status::kDQuot;
  if ((full || over || status == nfs4::Status::kDelay) && work->range != work->plan.needed) {
    work->range = work->plan.needed;
    return begin_placing(work);
  }
  // Only a brick that is full sends a file to another one.
  if (over) return make_allowance(work);
  if (!full) return finish(work, status);
  if (work->places.size() > 1 && !work->shared) {
    work->places.pop_front();
    work->range = work->plan.wished;
    return begin_placing(work);
  }
  if (!work->shared) {
    work->shared = true;
    return begin_anew(work);
  }
  if (work->scattered) return finish(work, nfs4::Status::kLayoutTryLater);
  make_room(work);
}

// Nothing is free. What is ahead of files is taken back, from all of them once, before anybody hears so.
void FileSpace::make_room(const AllocationPointer& work) {
  if (!work->patience) {
    work->patience = clock_.now() + kRoomPatience;
    // Not of this one: it is we who have its turn.
    work->files_left = ahead_.size() - (ahead_.contains(work->inode) ? 1 : 0);
  } else if (clock_.now() >= *work->patience) {
    return finish(work, nfs4::Status::kDelay);
  }
  if (work->files_left == 0) return finish(work, nfs4::Status::kNoSpc);
  work->files_left -= std::min(work->files_left, AheadFiles::kAskedAtOnce);
  take_back_(work->inode, std::nullopt, lifetime_.guard([this, work, before = released_] {
    if (released_ == before) return make_room(work);
    work->range = work->plan.needed;
    work->shared = work->scattered = false;
    begin_anew(work);
  }));
}

// By the commit, as others were quicker: looked at again, once.
void FileSpace::make_allowance(const AllocationPointer& work) {
  const bool again = work->patience.has_value();
  if (!again) work->patience = clock_.now() + kRoomPatience;
  if (again && !work->allowed.of) return finish(work, nfs4::Status::kDQuot);
  make_allowance({.inode = work->inode,
                  .until = *work->patience,
                  .who_lacks = [this, work] { return who_lacks(work->inode, work->missing); },
                  .done =
                      [this, work](nfs4::Status status) {
                        if (status != nfs4::Status::kOk) return finish(work, status);
                        work->range = work->plan.needed;
                        begin_anew(work);
                      }});
}

void FileSpace::finish(const AllocationPointer& work, nfs4::Status status) {
  // Moved out first: `done` may end the turn and with it the captures we stand on.
  const Done done = std::move(work->done);
  done(status);
}

}  // namespace pnfsrdma::mds
