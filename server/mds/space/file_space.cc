// SPDX-License-Identifier: Apache-2.0
#include "server/mds/space/file_space.h"

#include <algorithm>
#include <utility>

#include "server/mds/meta/read_then.h"
#include "server/mds/space/unnaming.h"
#include "shared/base/check.h"
#include "shared/base/log.h"

// The half of FileSpace that takes memory back.
namespace pnfsrdma::mds {

namespace {
// Between looks for something to zero, and between batches of it.
constexpr Milliseconds kZeroingPause{250};
constexpr Milliseconds kZeroingGap{10};
constexpr uint64_t kZeroingBytes = uint64_t{4} << 20;
// Of what writers left behind the end, looked at in one turn.
constexpr size_t kRangesPerTurn = 64;
}  // namespace

FileSpace::FileSpace(EventLoop& loop, const Clock& clock, Namespace& names, BrickSet& bricks,
                     LayoutTable& table, TakeBack take_back)
    : loop_(loop),
      clock_(clock),
      names_(names),
      store_(names.store()),
      extents_(names.store()),
      bricks_(bricks),
      file_bricks_(loop, names.store(), bricks),
      table_(table),
      take_back_(std::move(take_back)),
      ahead_(names.store()),
      dead_bytes_(DeadMemory(names.store()).bytes().value_or(0)) {}

FileSpace::~FileSpace() {
  loop_.cancel(zeroing_timer_);
}

bool FileSpace::tail_dirty(InodeId inode) {
  return extents_.tail_dirty(inode).value_or(true);
}

void FileSpace::is_tail_of(BrickNumber brick, InodeId inode, uint64_t offset,
                           std::function<void(bool)> done) {
  const auto is_away = [this](const FileBricks::Bricks& found) {
    return std::ranges::any_of(found, [this](BrickNumber number) {
      const BrickDevice* const device = bricks_.find(number);
      return device != nullptr && !device->usable();
    });
  };
  file_bricks_.find(inode, {offset, kEndOfFile}, is_away,
                    [brick, is_away, done = std::move(done)](const Outcome<FileBricks::Bricks>& found) {
                      done(found && found->contains(brick) && !is_away(*found));
                    });
}

void FileSpace::cut(InodeId inode, uint64_t size, const InodeUpdate& update, Done done) {
  InodeUpdate with_size = update;
  with_size.size = size;
  std::vector<ByteRange> edges;
  if (size % kGrainSize != 0) edges.push_back({size, size + 1});
  // Before: what is behind the new end is zeroed whatever happens.
  own_edges(inode, std::move(edges),
            [this, inode, size, with_size, done = std::move(done)](nfs4::Status status) {
              if (status != nfs4::Status::kOk) return done(status);
              // In the same batch as the new size: a crash between it and the zeroing finds the record.
              shorten(inode, round_up(size, kGrainSize), with_size, true, done);
            });
}

void FileSpace::clean_tail(InodeId inode, Done done) {
  look_then(
      store_, lifetime_.token(),
      [this, inode] {
        const auto present = names_.get(inode);
        if (present && tail_dirty(inode)) static_cast<void>(has_extent_behind(inode, (*present)->size));
      },
      [this, inode, done = std::move(done)] { clean_tail_now(inode, done); });
}

// Behind what a file of that size keeps.
Result<bool> FileSpace::has_extent_behind(InodeId inode, uint64_t size) {
  const uint64_t end = kept_end(size);
  TRY_ASSIGN(const std::vector<Extent> behind, extents_.overlapping(inode, end, kEndOfFile - end, 1));
  return !behind.empty();
}

void FileSpace::clean_tail_now(InodeId inode, const Done& done) {
  const auto present = names_.get(inode);
  if (!present || !tail_dirty(inode)) return done(nfs4::Status::kOk);
  const uint64_t size = (*present)->size;
  if (table_.writable_past(inode, size)) return zero_leftovers(inode, 0, done);
  if (const Milliseconds left = rest_left(inode); left > Milliseconds(0)) {
    loop_.after(left, lifetime_.guard([this, inode, done] { clean_tail(inode, done); }));
    return;
  }
  const uint64_t end = kept_end(size);
  const auto behind = has_extent_behind(inode, size);
  if (!behind) return done(status_of(behind.error()));
  // Readers may still look at the memory behind the end: then it stays, zeroed.
  if (!*behind || table_.reachable(inode, {end, kEndOfFile})) return zero_tail(inode, 0, done);
  shorten(inode, end, {.space_only = true}, false, done);
}

// What goes, and the grain of the end, which is zeroed: of the file's other memory no brick need be there.
void FileSpace::trim(InodeId inode, Done done) {
  read_then(
      store_, lifetime_.token(), [this, inode] { return names_.get(inode); },
      [this, inode, done = std::move(done)](const Outcome<InodePointer>& present) {
        if (!present) return done(nfs4::Status::kOk);
        absence(inode, {round_down((*present)->size, kGrainSize), kEndOfFile},
                lifetime_.guard([this, inode, done](nfs4::Status absent) {
                  if (absent != nfs4::Status::kOk) return done(absent);
                  trim_present(inode, done);
                }));
      });
}

void FileSpace::trim_present(InodeId inode, const Done& done) {
  look_then(
      store_, lifetime_.token(),
      [this, inode] {
        const auto present = names_.get(inode);
        if (present) static_cast<void>(has_extent_behind(inode, (*present)->size));
      },
      [this, inode, done] { trim_now(inode, done); });
}

void FileSpace::trim_now(InodeId inode, const Done& done) {
  const auto present = names_.get(inode);
  if (!present) return done(nfs4::Status::kOk);
  const uint64_t end = kept_end((*present)->size);
  if (table_.reachable(inode, {end, kEndOfFile})) return done(nfs4::Status::kOk);
  const auto behind = has_extent_behind(inode, (*present)->size);
  if (!behind) return done(status_of(behind.error()));
  if (*behind) return shorten(inode, end, {.space_only = true}, false, done);
  leave_ahead(inode);
  clean_tail(inode, done);
}

// It has nothing ahead.
void FileSpace::leave_ahead(InodeId inode) {
  Batch batch;
  ahead_.take_off_record(batch, inode);
  // What cannot be written now stays on record, and costs the next start a look.
  if (!batch.empty()) static_cast<void>(store_.commit(batch, CommitKind::kState));
  ahead_.leave(inode);
}

struct FileSpace::Removal {
  InodePointer inode;
  ExtentChange change;
  Unnaming unnaming;
  ByteRange rest;  // may have more of them: there are too many for one batch

  void write_to(Batch& batch) const {
    change.write_to(batch);
    unnaming.write_to(batch);
  }
  uint64_t space_used() const { return inode->space_used + static_cast<uint64_t>(change.growth()); }
};

// Only reads.
std::expected<FileSpace::Removal, nfs4::Status> FileSpace::removal(InodeId inode, const ByteRange& range) {
  TRY_ASSIGN(InodePointer present, names_.get(inode));
  names_.quotas().bring(*present);
  Removal removal{std::move(present),
                  ExtentChange(store_, inode),
                  {.shares = SharedChange(store_), .free = {}, .dead = {}},
                  {}};
  TRY_ASSIGN(const uint64_t end, batch_end(*removal.inode, range));
  const auto removed = removal.change.remove(range.begin, end - range.begin, kExtentsPerBatch);
  if (!removed) return std::unexpected(status_of(removed.error()));
  if (end < range.end) removal.rest = {end, range.end};
  if (removed->size() == kExtentsPerBatch) removal.rest = {removed->back().end(), range.end};
  const auto taken = take_names(*removal.inode, *removed, removal.unnaming);
  if (!taken) return std::unexpected(status_of(taken.error()));
  return removal;
}

// All extents of the range, a batch when the one before is durable. A crash, or an error, leaves the later ones.
void FileSpace::take_out(InodeId inode, const ByteRange& range, Done done) {
  read_then(
      store_, lifetime_.token(), [this, inode, range] { return removal(inode, range); },
      [this, inode, range, done = std::move(done)](const std::expected<Removal, nfs4::Status>& removal) {
        if (!removal) return done(removal.error());
        take_out_by(inode, *removal, done);
      });
}

void FileSpace::take_out_by(InodeId inode, const Removal& removal, const Done& done) {
  Batch batch;
  removal.write_to(batch);
  const InodeUpdate update{.space_used = removal.space_used(), .space_only = true};
  if (const auto updated = names_.update(inode, update, batch); !updated) return done(updated.error());
  free_when_synced(removal.unnaming, [this, inode, rest = removal.rest, done] {
    if (rest.empty()) return done(nfs4::Status::kOk);
    take_out(inode, rest, done);
  });
}

void FileSpace::shorten(InodeId inode, uint64_t end, const InodeUpdate& update, bool mark_dirty, Done done) {
  read_then(
      store_, lifetime_.token(), [this, inode, end] { return removal(inode, {end, kEndOfFile}); },
      [this, inode, end, update, mark_dirty,
       done = std::move(done)](const std::expected<Removal, nfs4::Status>& removal) {
        if (!removal) return done(removal.error());
        shorten_by(inode, *removal, end, update, mark_dirty, done);
      });
}

void FileSpace::shorten_by(InodeId inode, const Removal& removal, uint64_t end, InodeUpdate update,
                           bool mark_dirty, const Done& done) {
  const uint64_t size = update.size.value_or(removal.inode->size);
  const bool all = removal.rest.empty();
  update.space_used = removal.space_used();
  Batch batch;
  removal.write_to(batch);
  if (all) ahead_.take_off_record(batch, inode);
  // Extents that are still to go have bytes behind the new end, too.
  if (mark_dirty && (size < end || !all)) Extents::mark_tail_dirty(batch, inode);
  if (const auto updated = names_.update(inode, update, batch); !updated) return done(updated.error());
  if (all) ahead_.leave(inode);
  // A crash before the sync: the old size, the old extents, all bytes still there. Behind it: a dirty tail with its
  // record, zeroed at the next start.
  free_when_synced(removal.unnaming, [this, inode, size, rest = removal.rest, done] {
    if (rest.empty()) return shortened(inode, size, done);
    take_out(inode, rest, [this, inode, size, done](nfs4::Status status) {
      if (status != nfs4::Status::kOk) return done(status);
      leave_ahead(inode);
      shortened(inode, size, done);
    });
  });
}

void FileSpace::shortened(InodeId inode, uint64_t size, const Done& done) {
  // A writer whose grant ends with the last grain may have bytes there that he has not committed.
  if (table_.writable_past(inode, size)) return zero_leftovers(inode, 0, done);
  zero_tail(inode, 0, done);
}

struct FileSpace::Punching {
  Removal removal;
  std::vector<brick::Range> edges;  // of the range, in grains that stay
};

// Only reads.
std::expected<FileSpace::Punching, nfs4::Status> FileSpace::punching(InodeId inode, const ByteRange& range) {
  TRY_ASSIGN(const InodePointer present, names_.get(inode));
  // Behind the end is nothing to keep.
  const uint64_t end = range.end >= present->size ? kept_end(range.end) : round_down(range.end, kGrainSize);
  const uint64_t begin = round_up(range.begin, kGrainSize);
  const ByteRange inner{begin, std::max(begin, end)};
  TRY_ASSIGN(Removal removed, removal(inode, inner));
  Punching work{.removal = std::move(removed), .edges = {}};
  ByteRange first = range;
  ByteRange last;
  if (!inner.empty()) {
    first.end = inner.begin;
    last = {inner.end, range.end};
  }
  for (const ByteRange& edge : {first, last}) {
    if (edge.empty()) continue;
    const auto mapped = extents_.map(inode, edge.begin, edge.length());
    if (!mapped) return std::unexpected(status_of(mapped.error()));
    // The end of the file has moved since they were made the file's own.
    TRY_ASSIGN(const std::vector<Extent> shared, shared_parts(inode, edge, kExtentsPerBatch));
    if (!shared.empty()) return std::unexpected(nfs4::Status::kDelay);
    for (const Mapping& part : *mapped) {
      if (part.logical) work.edges.push_back({*part.logical, part.length});
    }
  }
  return work;
}

void FileSpace::punch(InodeId inode, const ByteRange& range, const InodeUpdate& update, Done done) {
  read_then(
      store_, lifetime_.token(), [this, inode] { return names_.get(inode); },
      [this, inode, range, update, done = std::move(done)](const Outcome<InodePointer>& present) {
        if (!present) return done(present.error());
        std::vector<ByteRange> edges;
        for (const uint64_t edge : {range.begin, range.end}) {
          // Behind the end is nothing to keep.
          if (edge % kGrainSize != 0 && edge < (*present)->size) edges.push_back({edge, edge + 1});
        }
        own_edges(inode, std::move(edges), [this, inode, range, update, done](nfs4::Status status) {
          if (status != nfs4::Status::kOk) return done(status);
          punch_owned(inode, range, update, done);
        });
      });
}

void FileSpace::punch_owned(InodeId inode, const ByteRange& range, const InodeUpdate& update, Done done) {
  read_then(
      store_, lifetime_.token(), [this, inode, range] { return punching(inode, range); },
      [this, inode, update, done = std::move(done)](const std::expected<Punching, nfs4::Status>& work) {
        if (!work) return done(work.error());
        punch_by(inode, *work, update, done);
      });
}

void FileSpace::punch_by(InodeId inode, const Punching& punching, InodeUpdate update, const Done& done) {
  const Removal& removal = punching.removal;
  update.space_used = removal.space_used();
  Batch batch;
  removal.write_to(batch);
  if (const auto updated = names_.update(inode, update, batch); !updated) return done(updated.error());
  const auto zero = [this, inode, edges = punching.edges, done](nfs4::Status status) {
    if (status != nfs4::Status::kOk) return done(status);
    zero_edges(inode, edges, done);
  };
  free_when_synced(removal.unnaming, [this, inode, rest = removal.rest, zero] {
    if (rest.empty()) return zero(nfs4::Status::kOk);
    take_out(inode, rest, zero);
  });
}

void FileSpace::zero_edges(InodeId inode, std::vector<brick::Range> edges, Done done) {
  if (edges.empty()) return done(nfs4::Status::kOk);
  if (const Milliseconds left = rest_left(inode); left > Milliseconds(0)) {
    loop_.after(left, lifetime_.guard([this, inode, edges = std::move(edges), done = std::move(done)] {
      zero_edges(inode, edges, done);
    }));
    return;
  }
  bricks_.zero(edges, lifetime_.guard([done = std::move(done)](nfs4::Status status) { done(status); }));
}

void FileSpace::left_behind(InodeId inode, const std::vector<ByteRange>& ranges) {
  const auto present = names_.get(inode);
  if (!present) return;
  RangeSet left;
  for (const ByteRange& range : ranges) left.add({std::max(range.begin, (*present)->size), range.end});
  for (const ByteRange& range : table_.out_of_reach(inode, std::move(left)).all())
    leftovers_[inode].add(range);
}

// What writers reach of it may be in many pieces: clean_tail() looks.
void FileSpace::tail_unknown(InodeId inode) {
  const auto present = names_.get(inode);
  if (present) leftovers_[inode].add({(*present)->size, kEndOfFile});
}

// The first part decides, but where somebody has become a writer since it was left.
bool FileSpace::has_leftovers(InodeId inode, const ByteRange& range) const {
  const auto found = leftovers_.find(inode);
  if (found == leftovers_.end()) return false;
  for (ByteRange rest = range;;) {
    const std::vector<ByteRange> parts = found->second.within(rest, kRangesPerTurn);
    const auto is_left = [&](const ByteRange& part) { return !table_.may_be_written(inode, part); };
    if (std::ranges::any_of(parts, is_left)) return true;
    if (parts.size() < kRangesPerTurn) return false;
    rest.begin = parts.back().end;
  }
}

struct FileSpace::Leftovers {
  RangeSet looked_at;
  RangeSet dead;  // of that
  std::vector<brick::Range> memory;
  uint64_t end = 0;  // up to here they have been looked for
};

// Only reads. Of what writers that have ended left at and behind `from`: what none of those reaches who write there
// still.
Outcome<FileSpace::Leftovers> FileSpace::leftovers(InodeId inode, uint64_t from) {
  TRY_ASSIGN(const InodePointer present, names_.get(inode));
  Leftovers page{.looked_at = {}, .dead = {}, .memory = {}, .end = kEndOfFile};
  const auto found = leftovers_.find(inode);
  if (found == leftovers_.end()) return page;
  const ByteRange left{std::max(from, present->size), kEndOfFile};
  const std::vector<ByteRange> ranges = found->second.within(left, kRangesPerTurn);
  if (ranges.size() == kRangesPerTurn) page.end = ranges.back().end;
  std::vector<Extent> extents;
  for (const ByteRange& range : ranges) {
    const size_t room = kExtentsPerBatch - extents.size();
    const auto more = extents_.overlapping(inode, range.begin, range.length(), room);
    if (!more) return std::unexpected(status_of(more.error()));
    extents.insert(extents.end(), more->begin(), more->end());
    if (more->size() < room) continue;
    page.end = std::min(extents.back().end(), range.end);
    break;
  }
  for (const ByteRange& range : ranges) page.looked_at.add(intersection(range, {left.begin, page.end}));
  page.dead = table_.out_of_reach(inode, page.looked_at);
  for (const Extent& extent : extents) {
    for (const ByteRange& part : page.dead.within({extent.file_offset, extent.end()})) {
      const Extent dead{part.begin, extent.logical + (part.begin - extent.file_offset), part.length(),
                        extent.born};
      TRY_ASSIGN(const auto own, own_memory(*present, dead));
      page.memory.insert(page.memory.end(), own.begin(), own.end());
    }
  }
  return page;
}

// Others write behind the end: only what none of them reaches can be zeroed now.
void FileSpace::zero_leftovers(InodeId inode, uint64_t from, Done done) {
  if (!leftovers_.contains(inode) || from == kEndOfFile) return done(nfs4::Status::kOk);
  // Of one that has ended since the page before, too.
  if (const Milliseconds left = rest_left(inode); left > Milliseconds(0)) {
    loop_.after(left, lifetime_.guard([this, inode, done = std::move(done)] { clean_tail(inode, done); }));
    return;
  }
  read_then(
      store_, lifetime_.token(), [this, inode, from] { return leftovers(inode, from); },
      [this, inode, done = std::move(done)](const Outcome<Leftovers>& page) {
        if (!page) return done(page.error());
        zero_dead(inode, *page, done);
      });
}

void FileSpace::zero_dead(InodeId inode, const Leftovers& page, const Done& done) {
  if (const auto left = leftovers_.find(inode); left != leftovers_.end()) {
    // What is not dead is a living writer's from now on.
    for (const ByteRange& range : page.looked_at.all()) left->second.remove(range);
    for (const ByteRange& range : page.dead.all()) left->second.add(range);
  }
  const auto clean = [this, inode, dead = page.dead.all(), end = page.end, done] {
    if (const auto rest = leftovers_.find(inode); rest != leftovers_.end()) {
      for (const ByteRange& range : dead) rest->second.remove(range);
      if (rest->second.empty()) leftovers_.erase(rest);
    }
    if (end == kEndOfFile) return done(nfs4::Status::kOk);
    loop_.at_own_turn(lifetime_.guard([this, inode, end, done] { zero_leftovers(inode, end, done); }));
  };
  if (page.memory.empty()) return clean();
  const auto zeroed = lifetime_.guard([clean, done](nfs4::Status status) {
    if (status != nfs4::Status::kOk) return done(status);
    clean();
  });
  when_owned_durably(inode, [this, memory = page.memory, zeroed] { bricks_.zero(memory, zeroed); });
}

struct FileSpace::Tail {
  std::vector<brick::Range> memory;
  std::optional<uint64_t> next;  // there may be more from here on
};

// Only reads. nullopt: it is clean, or the file has gone.
Outcome<std::optional<FileSpace::Tail>> FileSpace::tail(InodeId inode, uint64_t from) {
  const auto present = names_.get(inode);
  if (!present || !tail_dirty(inode)) return std::nullopt;
  // A size that has grown since the page before leaves less to zero.
  from = std::max(from, (*present)->size);
  const auto extents = extents_.overlapping(inode, from, kEndOfFile - from, kExtentsPerBatch);
  if (!extents) return std::unexpected(status_of(extents.error()));
  Tail page;
  for (const Extent& extent : *extents) {
    const uint64_t skip = from > extent.file_offset ? from - extent.file_offset : 0;
    if (skip >= extent.length) continue;
    TRY_ASSIGN(const auto own, own_memory(**present, {extent.file_offset + skip, extent.logical + skip,
                                                      extent.length - skip, extent.born}));
    page.memory.insert(page.memory.end(), own.begin(), own.end());
  }
  if (extents->size() == kExtentsPerBatch) page.next = extents->back().end();
  return page;
}

// All behind the end from there on, a batch of extents at a time. The record goes behind the last one: a crash or an
// error between two of them zeroes again.
void FileSpace::zero_tail(InodeId inode, uint64_t from, Done done) {
  if (const Milliseconds left = rest_left(inode); left > Milliseconds(0)) {
    loop_.after(left, lifetime_.guard([this, inode, from, done] { zero_tail(inode, from, done); }));
    return;
  }
  read_then(
      store_, lifetime_.token(), [this, inode, from] { return tail(inode, from); },
      [this, inode, done = std::move(done)](const Outcome<std::optional<Tail>>& page) {
        if (!page) return done(page.error());
        if (!*page) return done(nfs4::Status::kOk);
        zero_page(inode, **page, done);
      });
}

void FileSpace::zero_page(InodeId inode, const Tail& page, const Done& done) {
  if (page.memory.empty()) return tail_zeroed(inode, done);
  const auto zeroed = lifetime_.guard([this, inode, next = page.next, done](nfs4::Status status) {
    // The record stays: whoever grows the file, and every start, zeroes first.
    if (status != nfs4::Status::kOk) return done(status);
    if (!next) return tail_zeroed(inode, done);
    loop_.at_own_turn(lifetime_.guard([this, inode, next, done] { zero_tail(inode, *next, done); }));
  });
  when_owned_durably(inode, [this, memory = page.memory, zeroed] { bricks_.zero(memory, zeroed); });
}

void FileSpace::tail_zeroed(InodeId inode, const Done& done) {
  // Behind the zeroing, which is durable: a crash before this commit only zeroes again. Lazily, nobody waits for it.
  leftovers_.erase(inode);
  Batch batch;
  Extents::mark_tail_clean(batch, inode);
  const auto committed = store_.commit(batch, CommitKind::kState);
  done(committed ? nfs4::Status::kOk : status_of(committed.error()));
}

void FileSpace::destroy(InodeId inode, Done done) {
  read_then(
      store_, lifetime_.token(), [this, inode] { return removal(inode, {0, kEndOfFile}); },
      [this, inode, done = std::move(done)](const std::expected<Removal, nfs4::Status>& removal) {
        if (!removal) return done(removal.error());
        if (removal->rest.empty()) return destroy_with(inode, *removal, done);
        take_out_by(inode, *removal, [this, inode, done](nfs4::Status status) {
          if (status != nfs4::Status::kOk) return done(status);
          destroy(inode, done);
        });
      });
}

void FileSpace::destroy_with(InodeId inode, const Removal& removal, const Done& done) {
  Batch batch;
  removal.write_to(batch);
  ahead_.take_off_record(batch, inode);
  if (const auto destroyed = names_.destroy(inode, batch); !destroyed) return done(destroyed.error());
  ahead_.leave(inode);
  resting_.erase(inode);
  leftovers_.erase(inode);
  free_when_synced(removal.unnaming, [done] { done(nfs4::Status::kOk); });
}

// They are in no file any more with the newest commit. A crash before it is durable shows them in their file,
// so nothing may be destroyed before; one behind it leaves blocks without an extent, freed at the next start.
void FileSpace::free_when_synced(const Unnaming& unnaming, std::function<void()> then) {
  dead_bytes_ += unnaming.dead_bytes();
  free_when_synced(unnaming.free, std::move(then));
}

void FileSpace::free_when_synced(std::vector<LogicalRange> memory, std::function<void()> then) {
  store_.when_synced(store_.last_namespace_sequence(),
                     lifetime_.guard([this, memory = std::move(memory), then = std::move(then)] {
                       release(memory);
                       then();
                     }));
}

// It is in no file any more, durably, and no client reaches it.
void FileSpace::release(const std::vector<LogicalRange>& memory) {
  std::vector<brick::Run> freed;
  for (const LogicalRange& part : memory) {
    released_ += part.length;
    for (const brick::Run& run : bricks_.space_at(part.logical).free(part.logical, part.length))
      freed.push_back(run);
  }
  bricks_.free(freed);
}

void FileSpace::free_dead_behind(uint64_t from, std::function<void(bool)> done) {
  read_then(
      store_, lifetime_.token(), [this, from] { return DeadMemory(store_).page(from, kExtentsPerBatch); },
      [this, done = std::move(done)](const Result<std::vector<DeadRun>>& page) {
        if (!page) return done(false);
        free_dead_page(*page, done);
      });
}

// In the order of every removal: off the record, and when that is durable, free.
void FileSpace::free_dead_page(const std::vector<DeadRun>& page, std::function<void(bool)> done) {
  Batch batch;
  std::vector<LogicalRange> memory;
  uint64_t bytes = 0;
  for (const DeadRun& run : page) {
    if (names_.snapshots().holds(run.born, run.died)) continue;
    DeadMemory::erase(batch, run);
    memory.push_back(run.memory);
    bytes += run.memory.length;
  }
  auto next = lifetime_.guard([this, page = page, done] {
    if (page.size() < kExtentsPerBatch) return done(true);
    free_dead_behind(page.back().memory.end(), done);
  });
  if (batch.empty()) return loop_.at_own_turn(std::move(next));
  if (!store_.commit(batch, CommitKind::kNamespace)) return done(false);
  dead_bytes_ -= bytes;
  free_when_synced(std::move(memory), std::move(next));
}

void FileSpace::when_rested(InodeId inode, std::function<void()> then) {
  const Milliseconds left = rest_left(inode);
  if (left == Milliseconds(0)) return then();
  loop_.after(left, lifetime_.guard([this, inode, then = std::move(then)] { when_rested(inode, then); }));
}

void FileSpace::rest(InodeId inode) {
  resting_[inode] = clock_.now() + Milliseconds(brick::kQuarantineMs);
}

bool FileSpace::any_rests() {
  std::erase_if(resting_, [now = clock_.now()](const auto& each) { return each.second <= now; });
  return !resting_.empty();
}

Milliseconds FileSpace::rest_left(InodeId inode) {
  const auto found = resting_.find(inode);
  if (found == resting_.end()) return Milliseconds(0);
  const auto left = found->second - clock_.now();
  if (left > SteadyTime::duration::zero()) return std::chrono::ceil<Milliseconds>(left);
  resting_.erase(found);
  return Milliseconds(0);
}

void FileSpace::start_zeroing() {
  zeroing_timer_ = loop_.after(kZeroingPause, [this] { zero_in_background(); });
}

void FileSpace::zero_in_background() {
  start_zeroing();
  for (BrickDevice* const brick : bricks_.all()) zero_free_grains(brick->number());
}

void FileSpace::zero_free_grains(BrickNumber number) {
  BrickDevice* const brick = bricks_.find(number);
  if (brick == nullptr || !brick->ready() || !zeroing_.insert(number).second) return;
  auto work = std::make_shared<Zeroing>(Zeroing{.left = kZeroingBytes});
  std::vector<brick::Range> ranges;
  while (work->left > 0) {
    const auto piece = brick->space().take_dirty(work->left);
    if (!piece) break;
    work->pieces.push_back(*piece);
    ranges.push_back({piece->logical, piece->length});
    work->left -= piece->length;
  }
  if (ranges.empty()) {
    zeroing_.erase(number);
    return;
  }
  bricks_.zero(ranges, lifetime_.guard([this, number, work](nfs4::Status status) {
    const bool zeroed = status == nfs4::Status::kOk;
    zeroing_.erase(number);
    std::vector<brick::Run> emptied;
    for (Piece& piece : work->pieces) {
      piece.clean = zeroed;
      for (const brick::Run& run : bricks_.space_at(piece.logical).zeroed(piece)) emptied.push_back(run);
    }
    bricks_.free(emptied);
    // There may be more.
    if (zeroed && work->left == 0)
      loop_.after(kZeroingGap, lifetime_.guard([this, number] { zero_free_grains(number); }));
  }));
}

}  // namespace pnfsrdma::mds
