// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/file_clone.h"

#include <algorithm>
#include <utility>

#include "server/mds/meta/read_then.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {
// For both turns at once.
constexpr int kTurnTries = 4;
}  // namespace

struct FileClone::Cloning {
  What what;
  Done done;
  // Of the files, by number: two clones in opposite directions do not wait for each other.
  InodeQueue::Turn lower;
  InodeQueue::Turn higher;
  int tries = 0;
};

FileClone::FileClone(EventLoop& loop, const Clock& clock, Namespace& names, BrickSet& bricks,
                     FileSpace& space, InodeQueue& queue, Layouts& layouts, size_t slice)
    : loop_(loop),
      clock_(clock),
      names_(names),
      space_(space),
      queue_(queue),
      layouts_(layouts),
      persister_(loop, names.store(), bricks),
      slice_(slice != 0 ? slice : FileSpace::kClonedPerBatch) {}

void FileClone::clone(const What& what, Done done) {
  auto work = std::make_shared<Cloning>();
  work->what = what;
  work->done = std::move(done);
  take_turns(work);
}

void FileClone::take_turns(const CloningPointer& work) {
  const auto lower = std::min(work->what.source, work->what.target);
  queue_.exclusive(lower, [this, work](InodeQueue::Turn turn) {
    work->lower = std::move(turn);
    take_higher_turn(work);
  });
}

// Who uses the lower one does not wait for what is done with the other: but now and then, or we wait for ever.
void FileClone::take_higher_turn(const CloningPointer& work) {
  const auto [lower, higher] = std::minmax(work->what.source, work->what.target);
  if (lower == higher) return stop_writers(work);
  const bool waits = queue_.held() || (!queue_.idle(higher) && ++work->tries < kTurnTries);
  if (waits) work->lower.reset();
  queue_.exclusive(higher, [this, work, waits](InodeQueue::Turn turn) {
    if (waits) {
      turn.reset();
      return loop_.at_next_turn(lifetime_.guard([this, work] { take_turns(work); }));
    }
    work->higher = std::move(turn);
    stop_writers(work);
  });
}

// What they have written, and how long the source is, is known when they have gone.
void FileClone::stop_writers(const CloningPointer& work) {
  const What& what = work->what;
  layouts_.clear_writers(what.source, what.source_offset, what.client, [this, work](bool cleared) {
    if (!cleared) return finish(work, Status::kDelay);
    find_place(work);
  });
}

void FileClone::find_place(const CloningPointer& work) {
  read_then(
      names_.store(), lifetime_.token(), [this, work] { return place(work->what); },
      [this, work](const Outcome<Place>& place) {
        if (!place) return finish(work, place.error());
        if (place->source.empty()) return finish(work, Status::kOk);
        when_present(work, *place);
      });
}

// Only reads.
Outcome<FileClone::Place> FileClone::place(const What& what) {
  TRY_ASSIGN(const InodePointer source, names_.get(what.source));
  TRY_ASSIGN(const InodePointer target, names_.get(what.target));
  if (what.source_offset > source->size) return std::unexpected(Status::kInval);
  const uint64_t left = source->size - what.source_offset;
  const uint64_t count = what.count == 0 ? left : what.count;
  if (count > left) return std::unexpected(Status::kInval);
  if (what.target_offset > kFileSizeMax - count) return std::unexpected(Status::kFBig);
  const Place found{.source = {what.source_offset, what.source_offset + count},
                    .target = {what.target_offset, what.target_offset + count},
                    .source_size = source->size,
                    .target_size = target->size};
  const bool aligned = (what.source_offset | what.target_offset) % kGrainSize == 0;
  // A part of a grain only where both files end with it: what is behind it in the grain would be the other's.
  const bool whole = count % kGrainSize == 0 || (count == left && found.target.end >= target->size);
  if (!aligned || !whole) return std::unexpected(Status::kInval);
  if (what.source == what.target && found.source.overlaps(found.target))
    return std::unexpected(Status::kInval);
  return found;
}

void FileClone::when_present(const CloningPointer& work, const Place& place) {
  space_.absence(work->what.source, place.source, lifetime_.guard([this, work, place](Status absent) {
    if (absent != Status::kOk) return finish(work, absent);
    space_.absence(work->what.target, place.target, lifetime_.guard([this, work, place](Status away) {
      if (away != Status::kOk) return finish(work, away);
      clear_target(work, place);
    }));
  }));
}

// Whoever reaches what the target has there, or sees holes there.
void FileClone::clear_target(const CloningPointer& work, const Place& place) {
  const ByteRange grains = grains_of(place.target);
  layouts_.clear(work->what.target, grains, work->what.client, [this, work, place, grains](bool cleared) {
    if (!cleared) return finish(work, Status::kDelay);
    layouts_.clear_holes(work->what.target, grains, 0, [this, work, place](bool unseen) {
      if (!unseen) return finish(work, Status::kDelay);
      clear_end(work, place);
    });
  });
}

// Where it grows, nobody else may write behind the end.
void FileClone::clear_end(const CloningPointer& work, const Place& place) {
  if (place.target.end <= place.target_size) return clean_tails(work, place);
  const What& what = work->what;
  layouts_.clear_writers(what.target, place.target_size, what.client, [this, work, place](bool cleared) {
    if (!cleared || !layouts_.drop_end(work->what.target, work->what.client))
      return finish(work, Status::kDelay);
    clean_tails(work, place);
  });
}

// Bytes behind the end of either are zeros, before they are the other's too, or in the middle of the target.
void FileClone::clean_tails(const CloningPointer& work, const Place& place) {
  // A snapshot is taken of clean ones.
  if (snapshot_of(work->what.source) != 0) return clean_target(work, place);
  space_.clean_tail(work->what.source, [this, work, place](Status cleaned) {
    if (cleaned != Status::kOk) return finish(work, cleaned);
    clean_target(work, place);
  });
}

void FileClone::clean_target(const CloningPointer& work, const Place& place) {
  space_.clean_tail(work->what.target, [this, work, place](Status clean) {
    if (clean != Status::kOk) return finish(work, clean);
    make_durable(work, place);
  });
}

// Behind the last byte that a writer who was revoked may have on the way.
void FileClone::make_durable(const CloningPointer& work, const Place& place) {
  space_.when_rested(work->what.source, lifetime_.guard([this, work, place] {
    if (const auto made = space_.make_durable(); !made) return finish(work, made.error());
    persister_.persist(work->what.source, {place.source},
                       lifetime_.guard([this, work, place](Status flushed) {
                         if (flushed != Status::kOk) return finish(work, flushed);
                         share(work, place);
                       }));
  }));
}

void FileClone::share(const CloningPointer& work, const Place& place) {
  const FileSpace::Clone clone{.source = work->what.source,
                               .range = place.source,
                               .target = work->what.target,
                               .target_offset = place.target.begin,
                               .update = {.mtime = clock_.wall_now(), .clear_setid = work->what.clear_setid},
                               .slice = work->what.slice != 0 ? work->what.slice : slice_};
  space_.clone(clone, [work](Status status) { finish(work, status); });
}

void FileClone::finish(const CloningPointer& work, Status status) {
  work->higher.reset();
  work->lower.reset();
  std::exchange(work->done, nullptr)(status);
}

}  // namespace pnfsrdma::mds
