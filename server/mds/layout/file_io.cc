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
}  // namespace

FileIo::FileIo(const Clock& clock, Namespace& names, BrickSet& bricks, FileSpace& space, LayoutTable& table,
               InodeQueue& queue, Layouts& layouts, uint64_t metadata_era)
    : clock_(clock),
      names_(names),
      bricks_(bricks),
      space_(space),
      table_(table),
      queue_(queue),
      layouts_(layouts),
      verifiers_(metadata_era, names.next_inode()),
      verifier_now_([this](BrickNumber brick) { return bricks_.verifier_of(brick); }) {}

namespace {

std::vector<brick::Range> memory_of(const std::vector<Mapping>& mapped) {
  std::vector<brick::Range> memory;
  for (const Mapping& part : mapped) {
    if (part.logical) memory.push_back({*part.logical, part.length});
  }
  return memory;
}

}  // namespace

// --- READ
// ----------------------------------------------------------------------------------------------------------------

void FileIo::read(uint64_t inode, uint64_t offset, uint32_t count, Done<Read> done) {
  // Before the queue: somebody in front of us may be waiting for the brick.
  const nfs4::Status absent = space_.absence(inode, range_of(offset, count));
  if (absent != nfs4::Status::kOk) return done(std::unexpected(absent));
  // A shared turn: the blocks stay the file's while the RDMA READs run.
  queue_.shared(inode, [this, inode, offset, count, done = std::move(done)](InodeQueue::Turn turn) {
    read_now(inode, offset, count, std::move(turn), done);
  });
}

void FileIo::read_now(uint64_t inode, uint64_t offset, uint32_t count, InodeQueue::Turn turn,
                      Done<Read> done) {
  read_then(
      names_.store(), lifetime_.token(),
      [this, inode, offset, count] { return place_of(inode, offset, count); },
      [this, offset, turn = std::move(turn),
       done = std::move(done)](std::expected<Place, nfs4::Status> place) mutable {
        if (!place) return done(std::unexpected(place.error()));
        read_from(*place, offset, std::move(turn), std::move(done));
      });
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

void FileIo::read_from(const Place& place, uint64_t offset, InodeQueue::Turn turn, Done<Read> done) {
  auto bytes = std::make_shared<Bytes>(place.length);  // zeros
  const bool end_of_file = place.end_of_file;
  const std::vector<Mapping>& mapped = place.mapped;
  if (bytes->empty()) return done(Read{bytes, end_of_file});
  const nfs4::Status absent = bricks_.absence(memory_of(mapped));
  if (absent != nfs4::Status::kOk) return done(std::unexpected(absent));
  const auto good = std::make_shared<bool>(true);
  const Join join([good, bytes, end_of_file, turn = std::move(turn), done = std::move(done)] {
    if (!*good) return done(std::unexpected(nfs4::Status::kDelay));
    done(Read{bytes, end_of_file});
  });
  for (const Mapping& part : mapped) {
    if (!part.logical) continue;
    const MutableByteSpan sink = MutableByteSpan(*bytes).subspan(part.file_offset - offset, part.length);
    bricks_.memory_at(*part.logical).read(*part.logical, sink, bytes, [good, end = join.part()](bool moved) {
      *good = *good && moved;
      end();
    });
  }
  join.end();
}

// --- WRITE
// ---------------------------------------------------------------------------------------------------------------

struct FileIo::Writing {
  Write what;
  ByteRange range;
  InodeQueue::Turn turn;
  Done<nfs4::WriteResult> done;
  WriteVerifiers::Bricks bricks;  // what the bytes go to, with the verifiers of before
  bool sync_first = false;        // bytes go to old memory behind the old end
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
  // Over bytes that have memory already, others may write and read beside us.
  read_then(
      names_.store(), lifetime_.token(), [this, work] { return obstacle(*work); },
      [this, work](std::expected<Obstacle, nfs4::Status> in_the_way) { begin_write(work, in_the_way); });
}

void FileIo::begin_write(const WritingPointer& work, std::expected<Obstacle, nfs4::Status> in_the_way) {
  if (!in_the_way) return finish(work, std::unexpected(in_the_way.error()));
  if (*in_the_way != Obstacle::kNone) return write_exclusively(work);
  queue_.shared(work->what.inode, [this, work](InodeQueue::Turn turn) {
    work->turn = std::move(turn);
    write_in_place(work);
  });
}

// Only reads.
std::expected<FileIo::Obstacle, nfs4::Status> FileIo::obstacle(const Writing& work) {
  TRY_ASSIGN(const InodePointer inode, names_.get(work.what.inode));
  // Bytes between the old end and ours become readable: they must be zeros.
  const bool grows = work.range.end > inode->size;
  if (grows && table_.end_holder(work.what.inode, work.what.client) != 0) return Obstacle::kWriters;
  if (grows && space_.tail_dirty(work.what.inode)) {
    if (!table_.writable_past(work.what.inode, inode->size)) return Obstacle::kDirtyTail;
    // Without a gap all that becomes readable is ours.
    if (work.range.begin > inode->size) return Obstacle::kWriters;
  }
  const auto mapped = space_.extents().map(work.what.inode, work.range.begin, work.range.length());
  if (!mapped) return std::unexpected(status_of(mapped.error()));
  const nfs4::Status absent = bricks_.absence(memory_of(*mapped));
  if (absent != nfs4::Status::kOk) return std::unexpected(absent);
  const bool hole =
      std::any_of(mapped->begin(), mapped->end(), [](const Mapping& part) { return !part.logical; });
  if (hole) return Obstacle::kHole;
  // Memory that came for more than a layout told: whoever saw the hole reads zeros until he has given it back.
  return layouts_.holds_hole(work.what.inode, work.range) ? Obstacle::kSeenHole : Obstacle::kNone;
}

void FileIo::write_in_place(const WritingPointer& work) {
  // Things may have changed while we waited for the turn.
  const auto in_the_way = obstacle(*work);
  if (!in_the_way) return finish(work, std::unexpected(in_the_way.error()));
  if (*in_the_way == Obstacle::kNone) return commit_size(work);
  work->turn.reset();
  write_exclusively(work);
}

void FileIo::write_exclusively(const WritingPointer& work) {
  queue_.exclusive(work->what.inode, [this, work](InodeQueue::Turn turn) {
    work->turn = std::move(turn);
    const auto in_the_way = obstacle(*work);
    if (!in_the_way) return finish(work, std::unexpected(in_the_way.error()));
    const auto inode = names_.get(work->what.inode);
    if (!inode) return finish(work, std::unexpected(inode.error()));
    if (*in_the_way != Obstacle::kWriters) return write_over_clean_tail(work);
    // They commit what they mean to keep, and leave.
    const ByteRange behind{(*inode)->size, kEndOfFile};
    layouts_.clear_writers(work->what.inode, behind.begin, work->what.client,
                           [this, work, behind](bool cleared) {
                             const nfs4::Status absent = space_.absence(work->what.inode, behind);
                             if (absent != nfs4::Status::kOk) return finish(work, std::unexpected(absent));
                             if (!cleared) return finish(work, std::unexpected(nfs4::Status::kDelay));
                             table_.drop_end(work->what.inode, work->what.client);
                             write_over_clean_tail(work);
                           });
  });
}

void FileIo::write_over_clean_tail(const WritingPointer& work) {
  space_.clean_tail(work->what.inode, [this, work](nfs4::Status cleaned) {
    if (cleaned != nfs4::Status::kOk) return finish(work, std::unexpected(cleaned));
    const auto in_the_way = obstacle(*work);
    if (!in_the_way) return finish(work, std::unexpected(in_the_way.error()));
    if (*in_the_way == Obstacle::kHole) return allocate(work);
    if (*in_the_way == Obstacle::kSeenHole) return clear_seen_holes(work);
    commit_size(work);
  });
}

void FileIo::clear_seen_holes(const WritingPointer& work) {
  layouts_.clear_holes(work->what.inode, work->range, 0, [this, work](bool cleared) {
    if (!cleared) return finish(work, std::unexpected(nfs4::Status::kDelay));
    commit_size(work);
  });
}

void FileIo::allocate(const WritingPointer& work) {
  const auto inode = names_.get(work->what.inode);
  if (!inode) return finish(work, std::unexpected(inode.error()));
  // Room ahead only for files that grow at their end, as one written by 1 MiB after the other does.
  const uint64_t wish_end =
      work->range.begin <= (*inode)->size && work->range.end > kSmallFileMax ? kEndOfFile : work->range.end;
  const auto planned = space_.plan(work->what.inode, work->range, wish_end);
  if (!planned) return finish(work, std::unexpected(planned.error()));
  const AllocationPlan plan = *planned;
  const uint64_t behind = std::max(work->range.begin, (*inode)->size);
  if (behind < work->range.end) {
    const auto old = space_.extents().overlapping(work->what.inode, behind, work->range.end - behind);
    if (!old) return finish(work, std::unexpected(status_of(old.error())));
    work->sync_first = !old->empty();
  }
  // Whoever reads zeros from a hole there must ask again, the writer too.
  layouts_.clear_holes(work->what.inode, plan.wished, 0, [this, work, plan](bool cleared) {
    if (!cleared) return finish(work, std::unexpected(nfs4::Status::kDelay));
    const auto inode = names_.get(work->what.inode);
    if (!inode) return finish(work, std::unexpected(inode.error()));
    // The size goes with the extents, before the bytes: a crash between leaves zeros nobody was promised
    // otherwise, and no byte behind the end.
    FileSpace::Change change{.scattered = true};
    change.update.mtime = clock_.wall_now();
    change.update.clear_setid = work->what.clear_setid;
    change.update.size = std::max((*inode)->size, work->range.end);
    // RFC 8881, 18.32.3: the size of an UNSTABLE4 write may be lost as its bytes may, until COMMIT. Setuid
    // bits must not come back.
    const bool lazy = work->what.stable == nfs4::StableHow::kUnstable && !work->sync_first &&
                      !(work->what.clear_setid && (*inode)->mode != mode_without_setid(**inode));
    if (lazy) change.kind = CommitKind::kState;
    space_.allocate(work->what.inode, plan, std::move(change), [this, work](nfs4::Status status) {
      if (status != nfs4::Status::kOk) return finish(work, std::unexpected(status));
      // New memory needs no sync before it is written: if the commit is lost, no file has it, and it is
      // zeroed before the next one gets it.
      if (!work->sync_first) return place(work);
      place_when_synced(work);
    });
  });
}

// Memory is there. A size that grows over old memory must be durable before the bytes are: else a crash
// leaves bytes behind the end without a tail record.
void FileIo::commit_size(const WritingPointer& work) {
  const auto inode = names_.get(work->what.inode);
  if (!inode) return finish(work, std::unexpected(inode.error()));
  if (work->range.end <= (*inode)->size) {
    if (work->what.clear_setid && (*inode)->mode != mode_without_setid(**inode)) {
      const auto cleared = names_.update(work->what.inode, {.mtime = clock_.wall_now(), .clear_setid = true});
      if (!cleared) return finish(work, std::unexpected(cleared.error()));
    }
    return place(work);
  }
  const auto grown = names_.update(
      work->what.inode,
      {.size = work->range.end, .mtime = clock_.wall_now(), .clear_setid = work->what.clear_setid});
  if (!grown) return finish(work, std::unexpected(grown.error()));
  place_when_synced(work);
}

void FileIo::place_when_synced(const WritingPointer& work) {
  KeyValueStore& store = names_.store();
  store.when_synced(store.last_namespace_sequence(), lifetime_.guard([this, work] { place(work); }));
}

void FileIo::place(const WritingPointer& work) {
  const auto mapped = space_.extents().map(work->what.inode, work->range.begin, work->range.length());
  if (!mapped) return finish(work, std::unexpected(status_of(mapped.error())));
  const auto good = std::make_shared<bool>(true);
  const Join join([this, good, work] {
    // Who read meanwhile saw old bytes, or zeros under the new size: what it caches must not pass for the new
    // ones, so `change` moves when they are there (RFC 8881, 5.8.1.4).
    const auto touched = names_.touch(work->what.inode);
    if (!touched) return finish(work, std::unexpected(touched.error()));
    if (!*good) return finish(work, std::unexpected(nfs4::Status::kDelay));
    make_stable(work);
  });
  work->bricks = bricks_.verifiers(memory_of(*mapped));
  for (const Mapping& part : *mapped) {
    const ByteSpan source =
        ByteSpan(*work->what.data).subspan(part.file_offset - work->range.begin, part.length);
    // Our turn keeps the extents, so there is no hole: allocate() filled them all.
    const auto moved = [good, end = join.part()](bool written) {
      *good = *good && written;
      end();
    };
    if (part.logical) {
      bricks_.memory_at(*part.logical).write(*part.logical, source, work->what.data, moved);
    } else {
      moved(false);
    }
  }
  join.end();
}

void FileIo::make_stable(const WritingPointer& work) {
  nfs4::WriteResult result{static_cast<uint32_t>(work->what.data->size()), work->what.stable, {}};
  if (work->what.stable == nfs4::StableHow::kUnstable) {
    result.verifier =
        verifiers_.wrote(work->what.inode, work->bricks, bricks_.verifier_changes(), verifier_now_);
    return finish(work, result);
  }
  commit(work->what.inode, work->range.begin, static_cast<uint32_t>(work->range.length()),
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

// --- COMMIT
// --------------------------------------------------------------------------------------------------------------

void FileIo::commit(uint64_t inode, uint64_t offset, uint32_t count, Done<nfs4::Verifier> done) {
  // The reply waits for the sync beside the flush.
  if (const auto made = space_.make_durable(); !made) return done(std::unexpected(made.error()));
  const auto present = names_.get(inode);
  if (!present) return done(std::unexpected(present.error()));
  const uint64_t size = (*present)->size;
  // Behind the end, too: what a client has written there under a layout is not in the size until its
  // LAYOUTCOMMIT, and it may have lost the way to flush it itself.
  const uint64_t end = count == 0 ? size : range_of(offset, count).end;
  const uint64_t mark = verifiers_.mark(inode);
  const bool whole = offset == 0 && end >= size;
  std::vector<brick::Range> memory;
  if (end > offset) {
    const auto mapped = space_.extents().map(inode, offset, end - offset);
    if (!mapped) return done(std::unexpected(status_of(mapped.error())));
    memory = memory_of(*mapped);
  }
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
