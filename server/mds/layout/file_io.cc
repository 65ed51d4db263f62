// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/file_io.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/mds/meta/permissions.h"
#include "server/mds/meta/read_then.h"
#include "shared/base/join.h"

namespace pnfsrdma::mds {

namespace {
// Files up to this size get nothing ahead when they are written through the server.
constexpr uint64_t kSmallFileMax = uint64_t{256} << 10;
// So many are committed at once, in one turn of the loop.
constexpr size_t kCommitsAtOnce = 64;
}  // namespace

FileIo::FileIo(EventLoop& loop, const Clock& clock, Namespace& names, BrickSet& bricks, FileSpace& space,
               LayoutTable& table, InodeQueue& queue, Layouts& layouts, uint64_t metadata_era)
    : loop_(loop),
      clock_(clock),
      names_(names),
      bricks_(bricks),
      space_(space),
      table_(table),
      queue_(queue),
      layouts_(layouts),
      verifiers_(metadata_era, names.next_inode()),
      verifier_now_([this](BrickNumber brick) { return bricks_.verifier_of(brick); }),
      persister_(loop, names.store(), bricks) {}

namespace {

std::vector<brick::Range> memory_of(const std::vector<Mapping>& mapped) {
  std::vector<brick::Range> memory;
  for (const Mapping& part : mapped) {
    if (part.logical) memory.push_back({*part.logical, part.length});
  }
  return memory;
}

}  // namespace

// --- READ ---

void FileIo::read(uint64_t inode, uint64_t offset, uint32_t count, Done<Read> done) {
  find_place(inode, offset, count,
             [this, offset, done = std::move(done)](const auto& place, InodeQueue::Turn turn) {
               if (!place) return done(std::unexpected(place.error()));
               const auto bytes = std::make_shared<Bytes>(place->length);  // zeros
               std::vector<Transfer> transfers;
               for (const Mapping& part : place->mapped) {
                 if (!part.logical) continue;
                 const size_t at = part.file_offset - offset;
                 transfers.push_back({part, MutableByteSpan(*bytes).subspan(at, part.length), bytes});
               }
               transfer(transfers, std::move(turn),
                        [bytes, end_of_file = place->end_of_file, done](nfs4::Status status) {
                          if (status != nfs4::Status::kOk) return done(std::unexpected(status));
                          done(Read{bytes, end_of_file});
                        });
             });
}

namespace {

// The mapping as an answer tells it, as far as there is room: neighbours in the file are one piece, wherever they are.
std::vector<FileIo::Piece> pieces_of(const std::vector<Mapping>& mapped, uint64_t room) {
  std::vector<FileIo::Piece> pieces;
  for (const Mapping& part : mapped) {
    const bool is_data = part.logical.has_value();
    const bool goes_on = !pieces.empty() && (pieces.back().data != nullptr) == is_data;
    const uint64_t needed = (goes_on ? 0 : FileIo::kPieceBytes) + (is_data ? 1 : 0);
    if (room < needed) break;
    if (!goes_on) {
      pieces.push_back({.offset = part.file_offset, .data = is_data ? std::make_shared<Bytes>() : nullptr});
      room -= FileIo::kPieceBytes;
    }
    const uint64_t length = is_data ? std::min(part.length, room) : part.length;
    pieces.back().length += length;
    if (is_data) room -= length;
    if (length < part.length) break;
  }
  return pieces;
}

}  // namespace

void FileIo::read_pieces(uint64_t inode, uint64_t offset, uint32_t count, uint32_t room, Done<Pieces> done) {
  find_place(inode, offset, count,
             [this, offset, room, done = std::move(done)](const auto& place, InodeQueue::Turn turn) {
               if (!place) return done(std::unexpected(place.error()));
               auto told = std::make_shared<Pieces>(Pieces{pieces_of(place->mapped, room), false});
               std::vector<Transfer> transfers;
               auto part = place->mapped.begin();
               for (const Piece& piece : told->pieces) {
                 if (piece.data) piece.data->resize(piece.length);
                 const uint64_t end = piece.offset + piece.length;
                 for (; part != place->mapped.end() && part->file_offset < end; ++part) {
                   if (!part->logical) continue;
                   const uint64_t at = part->file_offset - piece.offset;
                   const size_t length = std::min(part->length, piece.length - at);
                   transfers.push_back({*part, MutableByteSpan(*piece.data).subspan(at, length), piece.data});
                 }
               }
               const uint64_t end =
                   told->pieces.empty() ? offset : told->pieces.back().offset + told->pieces.back().length;
               told->end_of_file = place->end_of_file && end == offset + place->length;
               transfer(transfers, std::move(turn), [told, done](nfs4::Status status) {
                 if (status != nfs4::Status::kOk) return done(std::unexpected(status));
                 done(std::move(*told));
               });
             });
}

void FileIo::find_place(uint64_t inode, uint64_t offset, uint32_t count, Placed placed) {
  const auto look = [this, inode, offset, count] { return place_of(inode, offset, count); };
  // A shared turn: the blocks stay the file's while the RDMA READs run.
  const auto wait = [this, inode, look, placed = std::move(placed)](nfs4::Status absent) {
    if (absent != nfs4::Status::kOk) return placed(std::unexpected(absent), nullptr);
    queue_.shared(inode, [this, look, placed](InodeQueue::Turn turn) {
      read_then(names_.store(), lifetime_.token(), look,
                [placed, turn = std::move(turn)](const std::expected<Place, nfs4::Status>& place) mutable {
                  placed(place, std::move(turn));
                });
    });
  };
  // Before the queue: somebody in front of us may be waiting for the brick.
  space_.absence(inode, range_of(offset, count), lifetime_.guard(wait));
}

// Only reads.
std::expected<FileIo::Place, nfs4::Status> FileIo::place_of(uint64_t inode, uint64_t offset, uint32_t count) {
  TRY_ASSIGN(const InodePointer present, names_.get(inode));
  const uint64_t size = present->size;
  const uint64_t end = std::min(size, range_of(offset, count).end);
  Place place{.length = end > offset ? end - offset : 0};
  // RFC 8881, 18.22.3: true when the last byte of the file is in the answer, or lies before it.
  place.end_of_file = offset >= size || end == size;
  if (place.length == 0) return place;
  auto mapped = space_.extents().map(inode, offset, place.length);
  if (!mapped) return std::unexpected(status_of(mapped.error()));
  place.mapped = *std::move(mapped);
  return place;
}

// All of them, or DELAY; what their bricks say first, if they are away.
void FileIo::transfer(const std::vector<Transfer>& transfers, InodeQueue::Turn turn,
                      std::function<void(nfs4::Status)> done) {
  std::vector<brick::Range> memory;
  for (const Transfer& one : transfers) memory.push_back({*one.from.logical, one.sink.size()});
  const nfs4::Status absent = bricks_.absence(memory);
  if (absent != nfs4::Status::kOk) return done(absent);
  const auto good = std::make_shared<bool>(true);
  const Join join([good, turn = std::move(turn), done = std::move(done)] {
    done(*good ? nfs4::Status::kOk : nfs4::Status::kDelay);
  });
  for (const Transfer& one : transfers) {
    bricks_.memory_at(*one.from.logical)
        .read(*one.from.logical, one.sink, one.owner, [good, end = join.part()](bool moved) {
          *good = *good && moved;
          end();
        });
  }
  join.end();
}

// --- WRITE ---

struct FileIo::Writing {
  Write what;
  ByteRange range;
  InodeQueue::Turn turn;
  Done<nfs4::WriteResult> done;
  std::vector<Mapping> mapped;    // where the bytes go; our turn keeps it so
  WriteVerifiers::Bricks bricks;  // of that, with the verifiers of before
  bool fresh = false;             // nothing has happened since `mapped` was looked up
  bool sync_first = false;        // bytes go to old memory behind the old end
  bool good = true;               // all bytes are there
};

void FileIo::finish(const WritingPointer& work, std::expected<nfs4::WriteResult, nfs4::Status> answer) {
  work->turn.reset();
  std::exchange(work->done, nullptr)(std::move(answer));
}

void FileIo::write(Write what, Done<nfs4::WriteResult> done) {
  const size_t count = what.data->size();
  if (what.offset > kFileSizeMax || count > kFileSizeMax - what.offset) {
    return done(std::unexpected(nfs4::Status::kFBig));
  }
  auto work = std::make_shared<Writing>();
  work->range = {what.offset, what.offset + count};
  work->what = std::move(what);
  work->done = std::move(done);
  if (work->range.empty()) {
    const nfs4::Verifier verifier =
        verifiers_.committed(work->what.inode, 0, false, bricks_.verifier_changes(), verifier_now_);
    return finish(work, nfs4::WriteResult{0, nfs4::StableHow::kFileSync, verifier});
  }
  look_and(&FileIo::begin_write, work);
}

void FileIo::look_and(Step step, const WritingPointer& work) {
  read_then(
      names_.store(), lifetime_.token(), [this, work] { return look(*work); },
      [this, step, work](std::expected<Sight, nfs4::Status> sight) {
        if (!sight) return finish(work, std::unexpected(sight.error()));
        (this->*step)(work, *std::move(sight));
      });
}

// Only reads.
std::expected<FileIo::Sight, nfs4::Status> FileIo::look(const Writing& work) {
  TRY_ASSIGN(InodePointer inode, names_.get(work.what.inode));
  auto mapped = space_.extents().map(work.what.inode, work.range.begin, work.range.length());
  if (!mapped) return std::unexpected(status_of(mapped.error()));
  Sight sight{.inode = std::move(inode), .mapped = *std::move(mapped)};
  TRY_ASSIGN(sight.obstacle, obstacle(work, sight));
  return sight;
}

std::expected<FileIo::Obstacle, nfs4::Status> FileIo::obstacle(const Writing& work, const Sight& sight) {
  // Bytes between the old end and ours become readable: they must be zeros.
  const bool grows = work.range.end > sight.inode->size;
  if (grows && table_.end_holder(work.what.inode, work.what.client) != 0) return Obstacle::kWriters;
  if (grows && space_.tail_dirty(work.what.inode)) {
    if (!table_.writable_past(work.what.inode, sight.inode->size)) return Obstacle::kDirtyTail;
    // Without a gap all that becomes readable is ours.
    if (work.range.begin > sight.inode->size) return Obstacle::kWriters;
  }
  const nfs4::Status absent = bricks_.absence(memory_of(sight.mapped));
  if (absent != nfs4::Status::kOk) return std::unexpected(absent);
  const bool hole = std::ranges::any_of(sight.mapped, [](const Mapping& part) { return !part.logical; });
  if (hole) return Obstacle::kHole;
  TRY_ASSIGN(const auto shared, space_.shared_parts(work.what.inode, work.range, kExtentsPerBatch));
  if (!shared.empty()) return Obstacle::kShared;
  // Memory that came for more than a layout told: whoever saw the hole reads zeros until he has given it back.
  return layouts_.holds_hole(work.what.inode, work.range) ? Obstacle::kSeenHole : Obstacle::kNone;
}

// Over bytes that have memory already, others may write and read beside us.
void FileIo::begin_write(const WritingPointer& work, Sight sight) {
  if (sight.obstacle != Obstacle::kNone) return write_exclusively(work);
  work->fresh = true;
  queue_.shared(work->what.inode, [this, work, sight = std::move(sight)](InodeQueue::Turn turn) mutable {
    work->turn = std::move(turn);
    if (work->fresh) return commit_size(work, std::move(sight));
    // Things may have changed while we waited for the turn.
    look_and(&FileIo::write_in_place, work);
  });
  work->fresh = false;
}

void FileIo::write_in_place(const WritingPointer& work, Sight sight) {
  if (sight.obstacle == Obstacle::kNone) return commit_size(work, std::move(sight));
  work->turn.reset();
  write_exclusively(work);
}

void FileIo::write_exclusively(const WritingPointer& work) {
  queue_.exclusive(work->what.inode, [this, work](InodeQueue::Turn turn) {
    work->turn = std::move(turn);
    look_and(&FileIo::clear_writers, work);
  });
}

void FileIo::clear_writers(const WritingPointer& work, Sight sight) {
  if (sight.obstacle != Obstacle::kWriters) return write_over_clean_tail(work);
  // They commit what they mean to keep, and leave.
  const ByteRange behind{sight.inode->size, kEndOfFile};
  layouts_.clear_writers(
      work->what.inode, behind.begin, work->what.client, [this, work, behind](bool cleared) {
        space_.absence(work->what.inode, behind, lifetime_.guard([this, work, cleared](nfs4::Status absent) {
          go_on_without_writers(work, cleared, absent);
        }));
      });
}

void FileIo::go_on_without_writers(const WritingPointer& work, bool cleared, nfs4::Status absent) {
  if (absent != nfs4::Status::kOk) return finish(work, std::unexpected(absent));
  if (!cleared) return finish(work, std::unexpected(nfs4::Status::kDelay));
  if (!layouts_.drop_end(work->what.inode, work->what.client))
    return finish(work, std::unexpected(nfs4::Status::kDelay));
  write_over_clean_tail(work);
}

void FileIo::write_over_clean_tail(const WritingPointer& work) {
  space_.clean_tail(work->what.inode, [this, work](nfs4::Status cleaned) {
    if (cleaned != nfs4::Status::kOk) return finish(work, std::unexpected(cleaned));
    write_to_own_memory(work);
  });
}

void FileIo::write_to_own_memory(const WritingPointer& work) {
  read_then(
      names_.store(), lifetime_.token(),
      [this, work] { return space_.to_unshare(work->what.inode, work->range); },
      [this, work](const Outcome<ByteRange>& stretch) {
        if (!stretch) return finish(work, std::unexpected(stretch.error()));
        if (stretch->empty()) return look_and(&FileIo::fill_or_place, work);
        unshare(work, *stretch);
      });
}

// Whoever reads what other files have, too, must ask again, the writer as well.
void FileIo::unshare(const WritingPointer& work, const ByteRange& stretch) {
  layouts_.clear(work->what.inode, stretch, work->what.client, [this, work, stretch](bool cleared) {
    if (!cleared) return finish(work, std::unexpected(nfs4::Status::kDelay));
    space_.unshare(work->what.inode, work->range, stretch, [this, work](nfs4::Status status) {
      if (status != nfs4::Status::kOk) return finish(work, std::unexpected(status));
      look_and(&FileIo::fill_or_place, work);
    });
  });
}

void FileIo::fill_or_place(const WritingPointer& work, Sight sight) {
  if (sight.obstacle == Obstacle::kHole) return allocate(work);
  if (sight.obstacle == Obstacle::kSeenHole) return clear_seen_holes(work);
  if (sight.obstacle == Obstacle::kShared) return finish(work, std::unexpected(nfs4::Status::kDelay));
  commit_size(work, std::move(sight));
}

void FileIo::clear_seen_holes(const WritingPointer& work) {
  layouts_.clear_holes(work->what.inode, work->range, 0, [this, work](bool cleared) {
    if (!cleared) return finish(work, std::unexpected(nfs4::Status::kDelay));
    look_and(&FileIo::commit_size, work);
  });
}

struct FileIo::Filling {
  AllocationPlan plan;
  bool over_old_memory = false;
};

// Only reads.
std::expected<FileIo::Filling, nfs4::Status> FileIo::filling(const Writing& work) {
  TRY_ASSIGN(const InodePointer inode, names_.get(work.what.inode));
  // Room ahead only for files that grow at their end, as one written by 1 MiB after the other does.
  const bool grows = work.range.begin <= inode->size && work.range.end > kSmallFileMax;
  const bool ahead = grows && !layouts_.writers_stopped();
  Filling filling;
  TRY_ASSIGN(filling.plan, space_.plan(work.what.inode, work.range, ahead ? kEndOfFile : work.range.end));
  const uint64_t behind = std::max(work.range.begin, inode->size);
  if (behind < work.range.end) {
    const auto old = space_.extents().overlapping(work.what.inode, behind, work.range.end - behind);
    if (!old) return std::unexpected(status_of(old.error()));
    filling.over_old_memory = !old->empty();
  }
  return filling;
}

void FileIo::allocate(const WritingPointer& work) {
  read_then(
      names_.store(), lifetime_.token(), [this, work] { return filling(*work); },
      [this, work](const std::expected<Filling, nfs4::Status>& filling) {
        if (!filling) return finish(work, std::unexpected(filling.error()));
        work->sync_first = filling->over_old_memory;
        // Whoever reads zeros from a hole there must ask again, the writer too.
        const AllocationPlan& plan = filling->plan;
        layouts_.clear_holes(work->what.inode, plan.wished, 0, [this, work, plan](bool cleared) {
          if (!cleared) return finish(work, std::unexpected(nfs4::Status::kDelay));
          read_then(
              names_.store(), lifetime_.token(), [this, work] { return names_.get(work->what.inode); },
              [this, work, plan](const Outcome<InodePointer>& inode) {
                if (!inode) return finish(work, std::unexpected(inode.error()));
                fill(work, **inode, plan);
              });
        });
      });
}

void FileIo::fill(const WritingPointer& work, const Inode& inode, const AllocationPlan& plan) {
  // The size goes with the extents, before the bytes: a crash between leaves zeros nobody was promised
  // otherwise, and no byte behind the end.
  FileSpace::Change change{.scattered = true};
  change.update.mtime = clock_.wall_now();
  change.update.clear_setid = work->what.clear_setid;
  change.update.size = std::max(inode.size, work->range.end);
  // RFC 8881, 18.32.3: the size of an UNSTABLE4 write may be lost as its bytes may, until COMMIT. Setuid
  // bits must not come back.
  const bool lazy = work->what.stable == nfs4::StableHow::kUnstable && !work->sync_first &&
                    !(work->what.clear_setid && inode.mode != mode_without_setid(inode));
  if (lazy) change.kind = CommitKind::kState;
  space_.allocate(work->what.inode, plan, std::move(change), [this, work](nfs4::Status status) {
    if (status != nfs4::Status::kOk) return finish(work, std::unexpected(status));
    place_filled(work);
  });
}

void FileIo::place_filled(const WritingPointer& work) {
  read_then(
      names_.store(), lifetime_.token(),
      [this, work] {
        return space_.extents().map(work->what.inode, work->range.begin, work->range.length());
      },
      [this, work](Result<std::vector<Mapping>> mapped) {
        if (!mapped) return finish(work, std::unexpected(status_of(mapped.error())));
        work->mapped = *std::move(mapped);
        // New memory needs no sync before it is written: if the commit is lost, no file has it, and it is
        // zeroed before the next one gets it.
        if (!work->sync_first) return place_in_own(work);
        place_when_synced(work);
      });
}

// Memory is there. A size that grows over old memory must be durable before the bytes are: else a crash
// leaves bytes behind the end without a tail record.
void FileIo::commit_size(const WritingPointer& work, Sight sight) {
  work->mapped = std::move(sight.mapped);
  const Inode& inode = *sight.inode;
  if (work->range.end <= inode.size) {
    if (work->what.clear_setid && inode.mode != mode_without_setid(inode)) {
      const auto cleared = names_.update(work->what.inode, {.mtime = clock_.wall_now(), .clear_setid = true});
      if (!cleared) return finish(work, std::unexpected(cleared.error()));
    }
    return place_in_own(work);
  }
  const auto grown = names_.update(
      work->what.inode,
      {.size = work->range.end, .mtime = clock_.wall_now(), .clear_setid = work->what.clear_setid});
  if (!grown) return finish(work, std::unexpected(grown.error()));
  place_when_synced(work);
}

void FileIo::place_in_own(const WritingPointer& work) {
  space_.when_owned_durably(work->what.inode, lifetime_.guard([this, work] { place(work); }));
}

void FileIo::place_when_synced(const WritingPointer& work) {
  KeyValueStore& store = names_.store();
  store.when_synced(store.last_namespace_sequence(), lifetime_.guard([this, work] { place(work); }));
}

void FileIo::place(const WritingPointer& work) {
  const Join join([this, work] { placed(work); });
  work->bricks = bricks_.verifiers(memory_of(work->mapped));
  for (const Mapping& part : work->mapped) {
    const ByteSpan source =
        ByteSpan(*work->what.data).subspan(part.file_offset - work->range.begin, part.length);
    const auto moved = [work, end = join.part()](bool written) {
      work->good = work->good && written;
      end();
    };
    // No hole: allocate() filled them all.
    if (part.logical) {
      bricks_.memory_at(*part.logical).write(*part.logical, source, work->what.data, moved);
    } else {
      moved(false);
    }
  }
  join.end();
}

void FileIo::placed(const WritingPointer& work) {
  look_then(
      names_.store(), lifetime_.token(), [this, work] { static_cast<void>(names_.get(work->what.inode)); },
      [this, work] {
        // Who read meanwhile saw old bytes, or zeros under the new size: what it caches must not pass for the
        // new ones, so `change` moves when they are there (RFC 8881, 5.8.1.4).
        const auto touched = names_.touch(work->what.inode);
        if (!touched) return finish(work, std::unexpected(touched.error()));
        if (!work->good) return finish(work, std::unexpected(nfs4::Status::kDelay));
        make_stable(work, (*touched)->size);
      });
}

void FileIo::make_stable(const WritingPointer& work, uint64_t size) {
  nfs4::WriteResult result{static_cast<uint32_t>(work->what.data->size()), work->what.stable, {}};
  if (work->what.stable == nfs4::StableHow::kUnstable) {
    result.verifier = verifiers_.wrote(work->what.inode, work->range, work->bricks,
                                       bricks_.verifier_changes(), verifier_now_);
    return finish(work, result);
  }
  if (const auto made = space_.make_durable(); !made) return finish(work, std::unexpected(made.error()));
  const bool whole = work->range.begin == 0 && work->range.end >= size;
  persist(work->what.inode, memory_of(work->mapped), whole,
          [this, work, result](std::expected<nfs4::Verifier, nfs4::Status> verifier) mutable {
            if (!verifier) return finish(work, std::unexpected(verifier.error()));
            // Lost between the bytes and the flush.
            const bool lost = std::ranges::any_of(
                work->bricks, [&](const auto& took) { return verifier_now_(took.first) != took.second; });
            if (lost) return finish(work, std::unexpected(nfs4::Status::kDelay));
            result.verifier = *verifier;
            finish(work, result);
          });
}

// --- COMMIT ---

struct FileIo::Committing {
  ByteRange range;
  bool whole = false;  // it is all of the file
};

void FileIo::commit(uint64_t inode, uint64_t offset, uint32_t count, Done<nfs4::Verifier> done) {
  // The reply waits for the sync beside the flush.
  if (const auto made = space_.make_durable(); !made) return done(std::unexpected(made.error()));
  // Before the first look at the extents: a WRITE that comes during the flush is not of it.
  const uint64_t mark = verifiers_.mark(inode);
  const auto look = [this, inode, offset, count]() -> std::expected<Committing, nfs4::Status> {
    TRY_ASSIGN(const InodePointer present, names_.get(inode));
    // Behind the end, too: what a client has written there under a layout is not in the size until its
    // LAYOUTCOMMIT, and it may have lost the way to flush it itself.
    const uint64_t end = count == 0 ? present->size : range_of(offset, count).end;
    return Committing{.range = {offset, end}, .whole = offset == 0 && end >= present->size};
  };
  read_then(names_.store(), lifetime_.token(), look,
            [this, inode, mark, done = std::move(done)](const std::expected<Committing, nfs4::Status>& what) {
              if (!what) return done(std::unexpected(what.error()));
              std::vector<ByteRange> ranges;
              if (!what->range.empty()) ranges.push_back(what->range);
              persister_.persist(inode, std::move(ranges),
                                 [this, inode, mark, whole = what->whole, done](nfs4::Status status) {
                                   if (status != nfs4::Status::kOk) return done(std::unexpected(status));
                                   committed(inode, mark, whole, done);
                                 });
            });
}

// A turn of the loop, then the next ones when these are durable.
void FileIo::commit_all(std::function<void(bool)> done) {
  commit_some(std::make_shared<const std::vector<uint64_t>>(verifiers_.uncommitted()), 0, true,
              std::move(done));
}

void FileIo::commit_some(const std::shared_ptr<const std::vector<uint64_t>>& files, size_t next, bool good,
                         std::function<void(bool)> done) {
  if (!good || next == files->size()) return done(good);
  const size_t end = std::min(files->size(), next + kCommitsAtOnce);
  const auto all = std::make_shared<bool>(true);
  const Join join(lifetime_.guard([this, files, end, all, done = std::move(done)] {
    loop_.at_next_turn(
        lifetime_.guard([this, files, end, all, done] { commit_some(files, end, *all, done); }));
  }));
  for (; next < end; ++next) {
    const uint64_t inode = (*files)[next];
    // Together: what is written from here on is not of it.
    const uint64_t mark = verifiers_.mark(inode);
    std::vector<ByteRange> ranges = verifiers_.uncommitted(inode);
    if (ranges.empty()) continue;
    persister_.persist(inode, std::move(ranges),
                       [this, inode, mark, all, end = join.part()](nfs4::Status status) {
                         if (status == nfs4::Status::kOk) committed(inode, mark, true, [](const auto&) {});
                         // One that has been removed has nothing to lose.
                         *all = *all && (status == nfs4::Status::kOk || status == nfs4::Status::kStale);
                         end();
                       });
  }
  join.end();
}

// `whole`: it is all of the file.
void FileIo::persist(uint64_t inode, const std::vector<brick::Range>& memory, bool whole,
                     Done<nfs4::Verifier> done) {
  const uint64_t mark = verifiers_.mark(inode);
  if (memory.empty()) return committed(inode, mark, whole, done);
  const nfs4::Status absent = bricks_.absence(memory);
  if (absent != nfs4::Status::kOk) return done(std::unexpected(absent));
  bricks_.persist(memory,
                  lifetime_.guard([this, inode, mark, whole, done = std::move(done)](nfs4::Status status) {
                    if (status != nfs4::Status::kOk) return done(std::unexpected(status));
                    committed(inode, mark, whole, done);
                  }));
}

void FileIo::committed(uint64_t inode, uint64_t mark, bool whole, const Done<nfs4::Verifier>& done) {
  done(verifiers_.committed(inode, mark, whole, bricks_.verifier_changes(), verifier_now_));
}

}  // namespace pnfsrdma::mds
