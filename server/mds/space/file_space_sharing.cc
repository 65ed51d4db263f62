// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "server/mds/meta/format_version.h"
#include "server/mds/meta/read_then.h"
#include "server/mds/space/file_allocation.h"

// The part of FileSpace that lets files have the same memory, and gives them their own when they change it.
namespace pnfsrdma::mds {

namespace {
// So much is copied at once where a file is written that shares its memory: fewer extents, fewer recalls.
constexpr uint64_t kCopyUnit = brick::kBlockSize;
// And no more than this, whatever is asked for: the rest comes with the next request.
constexpr uint64_t kUnsharedAtOnce = uint64_t{64} << 20;
// Of shared memory, in one batch.
constexpr size_t kRecordsPerBatch = 1024;
}  // namespace

void FileSpace::Unnaming::write_to(Batch& batch) const {
  shares.write_to(batch);
  for (const DeadRun& run : dead) DeadMemory::put(batch, run);
}

uint64_t FileSpace::Unnaming::dead_bytes() const {
  return std::accumulate(dead.begin(), dead.end(), uint64_t{0},
                         [](uint64_t sum, const DeadRun& run) { return sum + run.memory.length; });
}

// Whether memory of the file may be somebody else's, too.
bool FileSpace::may_share(const Inode& inode) const {
  return (inode.flags & kInodeShares) != 0 || names_.snapshots().newest() != 0;
}

// Only reads. Extents that have been taken out of the file.
Result<> FileSpace::take_names(const Inode& inode, const std::vector<Extent>& removed, Unnaming& unnaming) {
  const Snapshots& snapshots = names_.snapshots();
  for (const Extent& extent : removed) {
    std::vector<LogicalRange> unnamed{{extent.logical, extent.length}};
    if ((inode.flags & kInodeShares) != 0) {
      TRY_ASSIGN(unnamed, unnaming.shares.drop(unnamed.front()));
    }
    for (const LogicalRange& memory : unnamed) {
      if (snapshots.in_a_snapshot(extent.born)) {
        unnaming.dead.push_back({memory, extent.born, snapshots.now()});
      } else {
        unnaming.free.push_back(memory);
      }
    }
  }
  return {};
}

// Only reads. The parts of the memory that another file, or a snapshot, has too.
Result<std::vector<LogicalRange>> FileSpace::shared_of(const Inode& inode, const LogicalRange& memory,
                                                       SnapshotNumber born) {
  if (names_.snapshots().in_a_snapshot(born)) return std::vector{memory};
  if ((inode.flags & kInodeShares) == 0) return std::vector<LogicalRange>();
  return SharedRuns(store_).within(memory);
}

// Only reads. How far a batch may take extents out of the range: as far as the records of what they share are few.
Outcome<uint64_t> FileSpace::batch_end(const Inode& inode, const ByteRange& range) {
  if ((inode.flags & kInodeShares) == 0) return range.end;
  const auto extents = extents_.map(inode.id, range.begin, range.length(), kExtentsPerBatch);
  if (!extents) return std::unexpected(status_of(extents.error()));
  SharedRuns shared(store_);
  size_t left = kRecordsPerBatch;
  for (const Mapping& part : *extents) {
    if (!part.logical) continue;
    const LogicalRange memory{*part.logical, part.length};
    const auto runs = shared.overlapping(memory, left);
    if (!runs) return std::unexpected(status_of(runs.error()));
    left -= runs->size();
    if (left == 0) return part.file_offset + std::min(runs->back().end(), memory.end()) - memory.logical;
  }
  return range.end;
}

Outcome<std::vector<Extent>> FileSpace::shared_parts(InodeId inode, const ByteRange& range, size_t most) {
  std::vector<Extent> parts;
  TRY_ASSIGN(const InodePointer present, names_.get(inode));
  if (!may_share(*present)) return parts;
  const ByteRange grains = grains_of(range);
  const auto mapped = extents_.map(inode, grains.begin, grains.length(), most);
  if (!mapped) return std::unexpected(status_of(mapped.error()));
  for (const Mapping& part : *mapped) {
    if (!part.logical) continue;
    const auto found = shared_of(*present, {*part.logical, part.length}, part.born);
    if (!found) return std::unexpected(status_of(found.error()));
    for (const LogicalRange& memory : *found)
      parts.push_back(
          {part.file_offset + (memory.logical - *part.logical), memory.logical, memory.length, part.born});
  }
  return parts;
}

Outcome<ByteRange> FileSpace::to_unshare(InodeId inode, const ByteRange& range, size_t most) {
  TRY_ASSIGN(std::vector<Extent> needed, shared_parts(inode, range, most));
  if (needed.empty()) return ByteRange{};
  const uint64_t begin = needed.front().file_offset;
  const uint64_t end = std::min(needed.back().end(), begin + kUnsharedAtOnce);
  const ByteRange around{round_down(begin, kCopyUnit), round_up(end, kCopyUnit)};
  TRY_ASSIGN(const std::vector<Extent> parts, shared_parts(inode, around, kExtentsPerBatch));
  // Of very many only those that are needed.
  const bool all = !parts.empty() && parts.front().file_offset <= begin && parts.back().end() >= end;
  return all ? ByteRange{parts.front().file_offset, parts.back().end()} : ByteRange{begin, end};
}

void FileSpace::unshare(InodeId inode, const ByteRange& needed, const ByteRange& stretch, Done done) {
  const ByteRange within = intersection(grains_of(needed), stretch);
  auto work =
      std::make_shared<Allocation>(Allocation{.inode = inode,
                                              .plan = {.needed = within, .wished = stretch},
                                              .change = {.update = {.space_only = true}, .scattered = true},
                                              .done = std::move(done),
                                              .range = stretch,
                                              .unshares = true});
  begin_anew(work);
}

void FileSpace::when_owned_durably(InodeId inode, std::function<void()> then) {
  const auto present = names_.get(inode);
  const bool shares = !present || ((*present)->flags & kInodeShares) != 0;
  const Sequence newest = store_.last_namespace_sequence();
  if (!shares || store_.synced_sequence() >= newest) return then();
  store_.when_synced(newest, lifetime_.guard(std::move(then)));
}

void FileSpace::place_copies(const AllocationPointer& work) {
  read_then(
      store_, lifetime_.token(),
      [this, work] { return shared_parts(work->inode, work->range, kExtentsPerBatch); },
      [this, work](const Outcome<std::vector<Extent>>& parts) {
        if (!parts) return finish(work, parts.error());
        for (const Extent& part : *parts)
          work->holes.push_back({.range = {part.file_offset, part.end()}, .shared = part.logical});
        std::reverse(work->holes.begin(), work->holes.end());
        place_next(work);
      });
}

// One after the other; what was placed for them is not clean any more.
void FileSpace::copy_placed(const AllocationPointer& work, size_t at) {
  if (at == work->placed.size()) return commit_placed(work);
  Placed& placed = work->placed[at];
  placed.touched = true;
  bricks_.copy({*placed.shared, placed.piece.length}, placed.piece.logical,
               lifetime_.guard([this, work, at](nfs4::Status status) {
                 if (status != nfs4::Status::kOk) return retreat(work, status);
                 copy_placed(work, at + 1);
               }));
}

// Only reads. What is there now goes; it must be what was copied.
std::expected<void, nfs4::Status> FileSpace::replace_shared(const Placed& placed, Placing& placing) {
  const auto removed = placing.extents.remove(placed.file_offset, placed.piece.length);
  if (!removed) return std::unexpected(status_of(removed.error()));
  const bool same = removed->size() == 1 && removed->front().logical == *placed.shared &&
                    removed->front().length == placed.piece.length;
  if (!same) return std::unexpected(nfs4::Status::kDelay);
  const auto taken = take_names(*placing.inode, *removed, placing.unnaming);
  if (!taken) return std::unexpected(status_of(taken.error()));
  return {};
}

// Of each of these grains in turn.
void FileSpace::own_edges(InodeId inode, std::vector<ByteRange> edges, Done done) {
  if (edges.empty()) return done(nfs4::Status::kOk);
  const ByteRange edge = edges.back();
  edges.pop_back();
  read_then(
      store_, lifetime_.token(), [this, inode, edge] { return shared_parts(inode, edge, 1); },
      [this, inode, edge, edges = std::move(edges),
       done = std::move(done)](const Outcome<std::vector<Extent>>& parts) {
        if (!parts) return done(parts.error());
        if (parts->empty()) return own_edges(inode, edges, done);
        unshare(inode, edge, grains_of(edge), [this, inode, edges, done](nfs4::Status status) {
          if (status != nfs4::Status::kOk) return done(status);
          own_edges(inode, edges, done);
        });
      });
}

// Only reads. What of the memory can be zeroed: behind the end of a file nobody else's bytes must be. Those of the
// grain of its end are zeros already: whoever cut it had made that his own.
Outcome<std::vector<brick::Range>> FileSpace::own_memory(const Inode& inode, const Extent& extent) {
  const auto shared = shared_of(inode, {extent.logical, extent.length}, extent.born);
  if (!shared) return std::unexpected(status_of(shared.error()));
  std::vector<brick::Range> own;
  uint64_t at = extent.logical;
  for (const LogicalRange& part : *shared) {
    const uint64_t behind = extent.file_offset + (part.end() - extent.logical);
    // Extents that a cut has left there: they are to go, not to be zeroed.
    if (behind > kept_end(inode.size)) return std::unexpected(nfs4::Status::kDelay);
    if (part.logical > at) own.push_back({at, part.logical - at});
    at = part.end();
  }
  const uint64_t end = extent.logical + extent.length;
  if (end > at) own.push_back({at, end - at});
  return own;
}

namespace {

std::vector<LogicalRange> memory_of(const std::vector<Extent>& extents,
                                    const std::vector<Extent>& more = {}) {
  std::vector<LogicalRange> memory;
  memory.reserve(extents.size() + more.size());
  for (const auto* list : {&extents, &more}) {
    for (const Extent& extent : *list) memory.push_back({extent.logical, extent.length});
  }
  return memory;
}

}  // namespace

struct FileSpace::CloneSlice {
  Clone left;            // what is still to do
  bool first = true;     // nothing of it is behind the end of the target yet
  bool allowed = false;  // memory was taken back for it: it may be, once
};

struct FileSpace::Cloning {
  InodePointer source;
  InodePointer target;
  InodePointer owner;  // the live file that may have the memory by itself, if it is there
  uint64_t end = 0;    // of what of the source is in this batch
  ExtentChange extents;
  Unnaming unnaming;
  Revival revival;

  // Its flag is not on record before the clone is.
  Inode target_that_shares() const {
    Inode sharing = *target;
    if (owner != nullptr && owner->id == target->id) sharing.flags |= kInodeShares;
    return sharing;
  }
};

// Only reads. What a live file has is alive; what a snapshot's has is so, or dead: then it comes back to life.
Result<std::vector<LogicalRange>> FileSpace::take_alive(InodeId source, const std::vector<Extent>& extents,
                                                        Revival& revival) {
  std::vector<LogicalRange> memory = memory_of(extents);
  if (snapshot_of(source) == 0) return memory;
  TRY(revival.prepare(memory));
  std::vector<LogicalRange> alive;
  for (const LogicalRange& part : memory) {
    TRY_ASSIGN(const std::vector<LogicalRange> parts, revival.take(part));
    alive.insert(alive.end(), parts.begin(), parts.end());
  }
  return alive;
}

// Only reads.
Outcome<FileSpace::Cloning> FileSpace::cloning(const Clone& clone) {
  TRY_ASSIGN(InodePointer source, names_.get(clone.source));
  TRY_ASSIGN(InodePointer target, names_.get(clone.target));
  names_.quotas().bring(*target);
  // Memory of a snapshot's file that is alive is named by the file it was of, or by others that say they share.
  const auto owner = names_.get(live_inode(clone.source));
  if (!owner && owner.error() != nfs4::Status::kStale) return std::unexpected(owner.error());
  Cloning work{std::move(source),
               std::move(target),
               owner ? *owner : nullptr,
               0,
               ExtentChange(store_, clone.target),
               {.shares = SharedChange(store_), .free = {}, .dead = {}},
               Revival(store_)};
  const uint64_t length = round_up(clone.range.end, kGrainSize) - clone.range.begin;
  // A part of a grain: what is behind it is neither the source's nor the target's.
  const uint64_t target_end = clone.target_offset + clone.range.length();
  const bool ends = work.source->size == clone.range.end && work.target->size <= target_end;
  if (clone.range.end % kGrainSize != 0 && !ends) return std::unexpected(nfs4::Status::kDelay);
  const bool unseen = clone.target_offset >= kept_end(work.target->size);
  // So many that as many extents as there may be are among them, each behind a hole, and one more.
  constexpr size_t kWholePieces = 2 * kClonedExtentsMax + 2;
  const auto mapped =
      extents_.map(clone.source, clone.range.begin, length, unseen ? clone.slice : kWholePieces);
  if (!mapped) return std::unexpected(status_of(mapped.error()));
  std::vector<Extent> extents;
  for (const Mapping& part : *mapped) {
    if (!part.logical) continue;
    if (bricks_.leaving_at(*part.logical)) return std::unexpected(nfs4::Status::kXDev);
    extents.push_back({clone.target_offset + (part.file_offset - clone.range.begin), *part.logical,
                       part.length, part.born});
  }
  work.end = mapped->back().file_offset + mapped->back().length;
  const auto removed =
      work.extents.remove(clone.target_offset, work.end - clone.range.begin, kClonedExtentsMax + 1);
  if (!removed) return std::unexpected(status_of(removed.error()));
  if (std::max(extents.size(), removed->size()) > kClonedExtentsMax)
    return std::unexpected(nfs4::Status::kFBig);
  const auto replaced = [&]() -> Result<> {
    TRY_ASSIGN(const std::vector<LogicalRange> alive, take_alive(clone.source, extents, work.revival));
    TRY(work.unnaming.shares.prepare(memory_of(extents, *removed)));
    TRY(work.unnaming.shares.add_all(alive));
    TRY(take_names(work.target_that_shares(), *removed, work.unnaming));
    return work.extents.insert_all(extents);
  }();
  if (!replaced)
    return std::unexpected(replaced.error().number() == EFBIG ? nfs4::Status::kFBig
                                                              : status_of(replaced.error()));
  return work;
}

// What is ahead of the target goes first, as it would for a quota: what is there from then on is the clone's. What of
// an unfinished one is behind the end goes again: as nobody could see it, nothing has changed. What cannot be trimmed
// now is on record as a dirty tail, and as ahead of the file.
void FileSpace::clone(const Clone& clone, Done done) {
  const auto trimmed = [this, clone](const Done& then) {
    if (!ahead_.contains(clone.target)) return then(nfs4::Status::kOk);
    trim(clone.target, then);
  };
  trimmed([this, clone, trimmed, done = std::move(done)](nfs4::Status) {
    clone_slice({.left = clone}, [trimmed, done](nfs4::Status status) {
      trimmed([status, done](nfs4::Status) { done(status); });
    });
  });
}

void FileSpace::clone_slice(const CloneSlice& slice, Done done) {
  if (store_.room().full) return done(nfs4::Status::kNoSpc);
  read_then(
      store_, lifetime_.token(), [this, left = slice.left] { return cloning(left); },
      [this, slice, done = std::move(done)](const Outcome<Cloning>& work) {
        if (!work) return done(work.error());
        const nfs4::Status status = commit_clone(slice, *work);
        if (status == nfs4::Status::kDQuot && !slice.allowed) return make_clone_allowance(slice, *work, done);
        if (status != nfs4::Status::kOk || work->end >= slice.left.range.end) return done(status);
        CloneSlice rest{.left = slice.left, .first = false};
        rest.left.target_offset += work->end - slice.left.range.begin;
        rest.left.range.begin = work->end;
        loop_.at_own_turn(lifetime_.guard([this, rest, done] { clone_slice(rest, done); }));
      });
}

void FileSpace::make_clone_allowance(const CloneSlice& slice, const Cloning& work, Done done) {
  const InodeId target = slice.left.target;
  const auto growth = static_cast<uint64_t>(std::max<int64_t>(work.extents.growth(), 0));
  make_allowance({.inode = target,
                  .until = clock_.now() + kRoomPatience,
                  .who_lacks = [this, target, growth] { return who_lacks(target, growth); },
                  .done =
                      [this, slice, done = std::move(done)](nfs4::Status allowed) {
                        if (allowed != nfs4::Status::kOk) return done(allowed);
                        clone_slice({.left = slice.left, .first = slice.first, .allowed = true}, done);
                      },
                  .keeps_own = true});
}

// The flag of the other file goes first: a crash in front of the second batch leaves it without a reason, no more.
// What is behind the end of the target is the source's: a dirty tail, until the last batch.
nfs4::Status FileSpace::commit_clone(const CloneSlice& slice, const Cloning& work) {
  const Clone& left = slice.left;
  if (work.owner != nullptr && (work.owner->flags & kInodeShares) == 0) {
    const auto flagged = names_.update(work.owner->id, {.shares = true, .space_only = true});
    if (!flagged) return flagged.error();
  }
  const auto target = names_.get(left.target);
  if (!target) return target.error();
  const bool last = work.end >= left.range.end;
  Batch batch;
  raise_format_version(batch, names_.shared_format());
  work.extents.write_to(batch);
  work.revival.write_to(batch);
  work.unnaming.write_to(batch);
  InodeUpdate update = last ? left.update : InodeUpdate{.space_only = true};
  if (last) update.size = std::max((*target)->size, left.target_offset + left.range.length());
  if (!last) {
    ahead_.put_on_record(batch, left.target);
    Extents::mark_tail_dirty(batch, left.target);
  } else if (!slice.first) {
    Extents::mark_tail_clean(batch, left.target);
  }
  update.space_used = (*target)->space_used + static_cast<uint64_t>(work.extents.growth());
  update.shares = true;
  if (const auto updated = names_.update(left.target, update, batch); !updated) return updated.error();
  if (!last) ahead_.enter(left.target, true, names_.quotas().counted_owners(**target));
  dead_bytes_ -= work.revival.bytes();
  free_when_synced(work.unnaming, [] {});
  return nfs4::Status::kOk;
}

}  // namespace pnfsrdma::mds
