// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
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

// Only reads. Extents that have been taken out of the file; returned is what no other extent names.
Result<std::vector<LogicalRange>> FileSpace::no_longer_named(const Inode& inode,
                                                             const std::vector<Extent>& removed,
                                                             SharedChange& shares) {
  std::vector<LogicalRange> unnamed;
  for (const Extent& extent : removed) {
    const LogicalRange memory{extent.logical, extent.length};
    if ((inode.flags & kInodeShares) == 0) {
      unnamed.push_back(memory);
      continue;
    }
    TRY_ASSIGN(const std::vector<LogicalRange> parts, shares.drop(memory));
    unnamed.insert(unnamed.end(), parts.begin(), parts.end());
  }
  return unnamed;
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
  if ((present->flags & kInodeShares) == 0) return parts;
  const ByteRange grains = grains_of(range);
  const auto mapped = extents_.map(inode, grains.begin, grains.length(), most);
  if (!mapped) return std::unexpected(status_of(mapped.error()));
  SharedRuns shared(store_);
  for (const Mapping& part : *mapped) {
    if (!part.logical) continue;
    const auto found = shared.within({*part.logical, part.length});
    if (!found) return std::unexpected(status_of(found.error()));
    for (const LogicalRange& memory : *found)
      parts.push_back({part.file_offset + (memory.logical - *part.logical), memory.logical, memory.length});
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
  const Extent copied{placed.file_offset, *placed.shared, placed.piece.length};
  const auto removed = placing.extents.remove(copied.file_offset, copied.length);
  if (!removed) return std::unexpected(status_of(removed.error()));
  if (*removed != std::vector{copied}) return std::unexpected(nfs4::Status::kDelay);
  const auto unnamed = no_longer_named(*placing.inode, *removed, placing.shares);
  if (!unnamed) return std::unexpected(status_of(unnamed.error()));
  placing.unnamed.insert(placing.unnamed.end(), unnamed->begin(), unnamed->end());
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
  if ((inode.flags & kInodeShares) == 0) return std::vector{brick::Range{extent.logical, extent.length}};
  const auto shared = SharedRuns(store_).within({extent.logical, extent.length});
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

struct FileSpace::Cloning {
  InodePointer source;
  InodePointer target;
  ExtentChange extents;
  SharedChange shares;
  std::vector<LogicalRange> unnamed;
};

// Only reads.
Outcome<FileSpace::Cloning> FileSpace::cloning(const Clone& clone) {
  TRY_ASSIGN(InodePointer source, names_.get(clone.source));
  TRY_ASSIGN(InodePointer target, names_.get(clone.target));
  Cloning work{
      std::move(source), std::move(target), ExtentChange(store_, clone.target), SharedChange(store_), {}};
  const uint64_t length = round_up(clone.range.end, kGrainSize) - clone.range.begin;
  // A part of a grain: what is behind it is neither the source's nor the target's.
  const uint64_t target_end = clone.target_offset + clone.range.length();
  const bool ends = work.source->size == clone.range.end && work.target->size <= target_end;
  if (clone.range.end % kGrainSize != 0 && !ends) return std::unexpected(nfs4::Status::kDelay);
  const auto mapped = extents_.map(clone.source, clone.range.begin, length, kClonedExtentsMax + 1);
  if (!mapped) return std::unexpected(status_of(mapped.error()));
  std::vector<Extent> extents;
  for (const Mapping& part : *mapped) {
    if (!part.logical) continue;
    if (bricks_.leaving_at(*part.logical)) return std::unexpected(nfs4::Status::kXDev);
    extents.push_back(
        {clone.target_offset + (part.file_offset - clone.range.begin), *part.logical, part.length});
  }
  const auto removed = work.extents.remove(clone.target_offset, length, kClonedExtentsMax + 1);
  if (!removed) return std::unexpected(status_of(removed.error()));
  if (std::max(extents.size(), removed->size()) > kClonedExtentsMax)
    return std::unexpected(nfs4::Status::kFBig);
  const auto replaced = [&]() -> Result<> {
    TRY(work.shares.prepare(memory_of(extents, *removed)));
    TRY(work.shares.add_all(memory_of(extents)));
    TRY_ASSIGN(work.unnamed, no_longer_named(*work.target, *removed, work.shares));
    return work.extents.insert_all(extents);
  }();
  if (!replaced)
    return std::unexpected(replaced.error().number() == EFBIG ? nfs4::Status::kFBig
                                                              : status_of(replaced.error()));
  return work;
}

void FileSpace::clone(const Clone& clone, Done done) {
  if (store_.room().full) return done(nfs4::Status::kNoSpc);
  read_then(
      store_, lifetime_.token(), [this, clone] { return cloning(clone); },
      [this, clone, done = std::move(done)](const Outcome<Cloning>& work) {
        if (!work) return done(work.error());
        done(commit_clone(clone, *work));
      });
}

// The flag of the source goes first: a crash in front of the second batch leaves it without a reason, no more.
nfs4::Status FileSpace::commit_clone(const Clone& clone, const Cloning& work) {
  if ((work.source->flags & kInodeShares) == 0) {
    const auto flagged = names_.update(clone.source, {.shares = true, .space_only = true});
    if (!flagged) return flagged.error();
  }
  const auto target = names_.get(clone.target);
  if (!target) return target.error();
  Batch batch;
  raise_format_version(batch);
  work.extents.write_to(batch);
  work.shares.write_to(batch);
  InodeUpdate update = clone.update;
  update.size = std::max((*target)->size, clone.target_offset + clone.range.length());
  update.space_used = (*target)->space_used + static_cast<uint64_t>(work.extents.growth());
  update.shares = true;
  if (const auto updated = names_.update(clone.target, update, batch); !updated) return updated.error();
  free_when_synced(work.unnamed, [] {});
  return nfs4::Status::kOk;
}

}  // namespace pnfsrdma::mds
