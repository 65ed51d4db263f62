// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>

#include "shared/base/log.h"
#include "shared/initiator/file/parts.h"

// The way of one I/O. In steady state, at queue depth 1, 4 KiB, layout held:
//   READ:  one doorbell (1 send), one wait (1 receive), the bytes land in the reply buffer: 0 copies, 0 MDS
//   calls; WRITE: the same, out of the request buffer; a WRITE that has to be durable: the same, with its
//   flush behind it;
// 0 allocations, 0 hand-overs to other threads, one network round trip, however many bricks.
namespace pnfsrdma::initiator {

namespace {

// A connection may die under an I/O this often before the MDS has to carry it.
constexpr int kAttemptsMax = 3;
// Committing our own growth makes room at once; that of others has to be waited for.
constexpr int kRoomTries = 3;

}  // namespace

Result<size_t> FileIo::Parts::move(const Io& io, uint64_t offset, BufferSlice slice) {
  if (unstable_in_doubt()) TRY(settle_doubt());
  Result<size_t> moved = move_now(io, offset, slice);
  // The session has become another one meanwhile: it may be the new server that was read.
  if (io.direction == Direction::kRead && unstable_in_doubt()) {
    TRY(settle_doubt());
    moved = move_now(io, offset, slice);
  }
  return moved;
}

Result<size_t> FileIo::Parts::move_now(const Io& io, uint64_t offset, BufferSlice slice) {
  size_t done = 0;
  while (done < slice.size()) {
    const BufferSlice rest = slice.slice(done, slice.size() - done);
    TRY_ASSIGN(const std::optional<size_t> stepped, step(io, offset + done, rest));
    if (!stepped) {
      TRY_ASSIGN(const size_t count, through_mds(io.direction, offset + done, rest));
      return done + count;
    }
    done += *stepped;
  }
  return done;
}

Result<std::optional<size_t>> FileIo::Parts::step(const Io& io, uint64_t offset, BufferSlice slice) {
  const Direction direction = io.direction;
  const bool for_write = direction == Direction::kWrite;
  Counter& fallbacks = fabric.statistics.fallbacks;
  if (!fabric.options.layouts) return std::nullopt;
  if (io.attempt >= kAttemptsMax) {
    fallbacks.add();
    return std::nullopt;
  }
  LayoutPin pin;
  std::optional<KeptWrites::Room> room;
  for (int tries = 1; !room; ++tries) {
    TRY_ASSIGN(const bool entered, enter(direction, offset, slice.size(), pin));
    if (!entered) return std::nullopt;
    // For what goes by RDMA, and no more; inside of the gate nobody waits.
    room = for_write ? room_for_copy(pin) : KeptWrites::Room();
    if (room) break;
    cache.leave(pin);
    if (tries < kRoomTries && make_room()) continue;
    fallbacks.add();
    return std::nullopt;
  }
  const uint32_t done = post_pieces(io, pin, slice);
  room.reset();
  cache.leave(pin);
  const uint32_t all = (1u << pin.pieces().size()) - 1;
  if (done != all) TRY(check_devices(pin, done));
  if (done != all) TRY(finish_pieces(io, pin, slice, done));
  if (pin.sequential) prefetch_behind(pin, direction);
  if (for_write && kept.any()) commit_growth_early();
  return static_cast<size_t>(pin.length);
}

Result<bool> FileIo::Parts::enter(Direction direction, uint64_t offset, uint64_t length, LayoutPin& pin) {
  const bool for_write = direction == Direction::kWrite;
  Counter& fallbacks = fabric.statistics.fallbacks;
  bool asked = false;
  for (int turn = 0; turn < kStateidTries;) {
    const auto entry = cache.enter(pin, offset, length, for_write, layouts.epoch);
    if (growth_void()) {
      // First what was lost with its layouts: else a read finds zeros there.
      if (entry == LayoutCache::Entry::kEntered) cache.leave(pin);
      TRY(commit_as_mounted());
      ++turn;
      continue;
    }
    if (entry == LayoutCache::Entry::kEntered) return true;
    if (entry == LayoutCache::Entry::kMissing && !std::exchange(asked, true)) {
      if (!layout_wanted(direction, offset, length)) {
        if (cache.paused(fabric.now())) fallbacks.add();
        return false;
      }
      if (acquire(direction, offset, length)) continue;
    }
    break;
  }
  fallbacks.add();
  return false;
}

// The pieces that are not done may not be done through the MDS either where the memory is too weak.
Result<> FileIo::Parts::check_devices(const LayoutPin& pin, uint32_t done) const {
  for (size_t i = 0; i < pin.pieces().size(); ++i) {
    const Device* device = pin.pieces()[i].device;
    if ((done & (1u << i)) == 0 && device != nullptr && device->too_weak())
      return std::unexpected(device->weakness());
  }
  return {};
}

Result<> FileIo::Parts::finish_pieces(const Io& io, const LayoutPin& pin, BufferSlice slice, uint32_t done) {
  Io again = io;
  ++again.attempt;
  // Exactly what was not acknowledged, each piece under what layout and connection there are by now.
  for (size_t i = 0; i < pin.pieces().size(); ++i) {
    if ((done & (1u << i)) != 0) continue;
    const LayoutSegment& piece = pin.pieces()[i];
    fabric.statistics.replays.add();
    const BufferSlice part = slice.slice(piece.offset - pin.offset, piece.length);
    // The hello of a new connection ends the old one: what still lies in the brick's socket lands no more.
    if (pin.unanswered) (void)patience.connect(*piece.device);
    TRY_ASSIGN(const size_t moved, move(again, piece.offset, part));
    // The MDS sees the file end earlier than we did: what is behind it reads as zeros.
    if (moved < part.size()) std::memset(part.data() + moved, 0, part.size() - moved);
  }
  return {};
}

// One brick's part of an I/O: what goes out there with one doorbell, and what became of it.
struct FileIo::Parts::BrickTurn {
  std::shared_ptr<Connection> connection;
  std::span<WorkItem> items;  // READs or WRITEs, and what flushes these behind them
  size_t pieces = 0;
  std::array<uint8_t, kPiecesMax> piece_of;  // by item
  std::optional<WorkBatch> batch;
  // The connection has not all that the layout tells, or did not do all that it was asked for.
  bool outdated = false;

  bool flushes() const { return items.size() > pieces; }
  bool flushed() const {
    if (!flushes()) return false;
    const std::optional<brick::PersistReply> reply = batch->reply();
    if (reply)
      return reply->status == brick::PersistStatus::kOk && reply->verifier == connection->hello.verifier;
    // A native one fails under another verifier; a SEND has done nothing without its answer.
    return std::all_of(items.begin() + static_cast<ptrdiff_t>(pieces), items.end(), [](const WorkItem& item) {
      return item.opcode == rdma::Opcode::kFlush && item.outcome == rdma::Outcome::kSuccess;
    });
  }
};

namespace {

uint32_t fill_holes(const LayoutPin& pin, BufferSlice slice, Counter& bytes) {
  uint32_t done = 0;
  for (size_t i = 0; i < pin.pieces().size(); ++i) {
    const LayoutSegment& piece = pin.pieces()[i];
    if (!piece.hole()) continue;
    std::memset(slice.data() + (piece.offset - pin.offset), 0, piece.length);
    bytes.add(piece.length);
    done |= 1u << i;
  }
  return done;
}

}  // namespace

uint32_t FileIo::Parts::post_pieces(const Io& io, LayoutPin& pin, BufferSlice slice) {
  uint32_t done = fill_holes(pin, slice, fabric.statistics.hole_bytes);
  std::array<WorkItem, 2 * kPiecesMax> items;
  std::array<BrickTurn, kPiecesMax> turns;
  std::span<WorkItem> room = items;
  size_t count = 0;
  // By address: SharedQueuePair::start() wants one order. Nearly always it is one device.
  for (Device* device = next_device(pin, nullptr); device != nullptr; device = next_device(pin, device)) {
    if (!prepare(turns[count], io, pin, slice, *device, room)) continue;
    room = room.subspan(turns[count++].items.size());
  }
  if (count == 0) return done;
  fabric.statistics.rdma_round_trips.add();
  // What was complete before the flush was posted lies under these WRITEs; what completes meanwhile may not.
  const uint64_t noted = io.stability == Stability::kDataSync ? dirty.noted() : 0;
  const SteadyTime deadline = fabric.io_deadline();
  for (BrickTurn& turn : std::span(turns).first(count)) start(turn, pin, deadline);
  for (BrickTurn& turn : std::span(turns).first(count)) {
    turn.connection->queue_pair.finish(*turn.batch, deadline);
    done |= take_outcome(turn, io.direction, pin, slice, noted);
  }
  return done;
}

Device* FileIo::Parts::next_device(const LayoutPin& pin, const Device* behind) {
  Device* next = nullptr;
  for (const LayoutSegment& piece : pin.pieces()) {
    if (piece.hole() || !std::less<>()(behind, piece.device)) continue;
    if (next == nullptr || std::less<>()(piece.device, next)) next = piece.device;
  }
  return next;
}

// False: nothing to be posted there.
bool FileIo::Parts::prepare(BrickTurn& turn, const Io& io, const LayoutPin& pin, BufferSlice slice,
                            Device& device, std::span<WorkItem> room) {
  const auto connected = device.connect();
  if (!connected) return false;
  turn.connection = *connected;
  const Connection& connection = **connected;
  const bool for_write = io.direction == Direction::kWrite;
  for (size_t i = 0; i < pin.pieces().size(); ++i) {
    const LayoutSegment& piece = pin.pieces()[i];
    if (piece.device != &device || piece.hole() || piece.incarnation != connection.incarnation) continue;
    const nfs4::Target& target = for_write ? piece.write : piece.read;
    rdma::RemoteSlice remote;
    const auto lookup = connection.resolve(piece.generation, target, piece.skip + piece.length, remote);
    if (lookup == Connection::Lookup::kDead) cache.drop_grant(target.grant);
    if (lookup == Connection::Lookup::kNewer) turn.outdated = true;
    if (lookup != Connection::Lookup::kFound) continue;
    room[turn.pieces] = WorkItem{.opcode = for_write ? rdma::Opcode::kWrite : rdma::Opcode::kRead,
                                 .local = slice.local(connection.transport, piece.offset - pin.offset,
                                                      static_cast<uint32_t>(piece.length)),
                                 .remote = remote.slice(piece.skip, piece.length)};
    turn.piece_of[turn.pieces++] = static_cast<uint8_t>(i);
  }
  if (turn.pieces == 0) {
    if (std::exchange(turn.outdated, false)) device.lost(turn.connection);
    return false;
  }
  const size_t flushes = io.stability == Stability::kDataSync ? flush_items(turn, room) : 0;
  turn.items = room.first(turn.pieces + flushes);
  return true;
}

// Puts behind the WRITEs what flushes them. Returns how many items; none where it cannot be done in one batch:
// fdatasync does it then.
size_t FileIo::Parts::flush_items(const BrickTurn& turn, std::span<WorkItem> room) {
  const size_t most = turn.connection->queue_pair.items_max();
  switch (turn.connection->flush) {
    case FlushMethod::kNative:
      if (2 * turn.pieces > most) return 0;
      for (size_t i = 0; i < turn.pieces; ++i) {
        room[turn.pieces + i] = WorkItem{.opcode = rdma::Opcode::kFlush, .remote = room[i].remote};
      }
      fabric.statistics.flushes_native.add();
      return turn.pieces;
    case FlushMethod::kCommitMessage:
      if (turn.pieces + 1 > most) return 0;
      fabric.statistics.flushes_commit_message.add();
      return 1;
    case FlushMethod::kLayoutCommit:
      break;
  }
  return 0;
}

void FileIo::Parts::start(BrickTurn& turn, const LayoutPin& pin, SteadyTime deadline) {
  turn.batch.emplace(turn.items);
  SharedQueuePair& queue_pair = turn.connection->queue_pair;
  if (!turn.flushes() || turn.connection->flush == FlushMethod::kNative) {
    queue_pair.start(*turn.batch, deadline);
    return;
  }
  brick::PersistCall call;
  for (size_t i = 0; i < turn.pieces; ++i) {
    const LayoutSegment& piece = pin.pieces()[turn.piece_of[i]];
    call.ranges.push_back({piece.write.grant, piece.skip, piece.length});
  }
  queue_pair.start(*turn.batch, std::move(call), deadline);
}

// A bit for each piece that is done.
uint32_t FileIo::Parts::take_outcome(BrickTurn& turn, Direction direction, LayoutPin& pin, BufferSlice slice,
                                     uint64_t noted) {
  const bool for_write = direction == Direction::kWrite;
  const Hello& hello = turn.connection->hello;
  const bool flushed = turn.flushed();
  // Written all the same, and not flushed: whoever flushes connects anew, and hears the verifier.
  if (turn.flushes() && !flushed) turn.outdated = true;
  uint32_t done = 0;
  for (size_t i = 0; i < turn.pieces; ++i) {
    const LayoutSegment& piece = pin.pieces()[turn.piece_of[i]];
    const rdma::Outcome outcome = turn.items[i].outcome;
    if (outcome == rdma::Outcome::kSuccess) {
      done |= 1u << turn.piece_of[i];
      count_bytes(direction, piece.length);
      // Before the gate is left: a recall that drains must find it in the list.
      if (for_write) {
        note_written(piece, slice.slice(piece.offset - pin.offset, piece.length), pin, hello.verifier,
                     flushed ? std::optional(noted) : std::nullopt);
      }
      continue;
    }
    turn.outdated = true;
    if (for_write) {
      pin.unanswered = true;
      dirty.posted({piece.device, hello.connection, pin.lineage, pin.layout, {piece.offset, piece.length}});
    }
    if (outcome == rdma::Outcome::kRemoteAccess) {
      cache.drop_grant(for_write ? piece.write.grant : piece.read.grant);
    }
  }
  if (turn.outdated) pin.pieces()[turn.piece_of[0]].device->lost(turn.connection);
  return done;
}

void FileIo::Parts::note_written(const LayoutSegment& piece, BufferSlice source, const LayoutPin& pin,
                                 const BrickVerifier& verifier, std::optional<uint64_t> flushed_behind) {
  const uint64_t known = std::clamp(pin.known_size, piece.offset, piece.end()) - piece.offset;
  const uint64_t commits = dirty.commits();
  // Kept before it is known: what a commit tells can be restored.
  const auto keep = [&] { kept.keep(piece.offset + known, source.bytes().subspan(known)); };
  if (known < piece.length) keep();
  if (known > 0) kept.forget(piece.offset, known);
  if (dirty.wrote(piece, pin.known_size, pin.lineage, verifier, fabric.clock.wall_now(), flushed_behind))
    flush_beside();
  // A commit between has forgotten the copy, perhaps.
  if (known < piece.length && dirty.commits() != commits) keep();
}

void FileIo::Parts::count_bytes(Direction direction, uint64_t bytes) {
  Statistics& counters = fabric.statistics;
  (direction == Direction::kRead ? counters.rdma_read_bytes : counters.rdma_write_bytes).add(bytes);
  (direction == Direction::kRead ? counters.rdma_reads : counters.rdma_writes).add();
}

Result<size_t> FileIo::Parts::through_mds(Direction direction, uint64_t offset, BufferSlice slice) {
  // What was written here beyond the server's end of file is not there for the server yet.
  if (dirty.grew() && (direction == Direction::kWrite || offset + slice.size() > cache.known_size())) {
    TRY(commit_as_mounted());
  }
  if (direction == Direction::kRead) return read_through_mds(offset, slice);
  TRY(patience.as_mounted([&] { return end_unknown({offset, slice.size()}, false); }));
  return write_through_mds(offset, slice);
}

Result<size_t> FileIo::Parts::read_through_mds(uint64_t offset, BufferSlice sink) {
  size_t done = 0;
  int tries = 0;
  while (done < sink.size()) {
    nfs4::Stateid stateid;
    bool open = false;
    const FileReference file = reference(false, &stateid, &open);
    if (!open) return fail(EBADF, "READ: not open for reading");
    const size_t count = std::min(sink.size() - done, mds.io_size_max());
    const auto answer = mds.read(file, stateid, offset + done, sink.bytes().subspan(done, count));
    if (!answer) {
      if (is_lost_state(answer.error().status) && ++tries < kStateidTries) continue;
      return fail(answer.error().to_errno(), "READ through the MDS");
    }
    const size_t read = answer->data.size();
    done += read;
    fabric.statistics.mds_reads.add();
    fabric.statistics.mds_read_bytes.add(read);
    if (answer->end_of_file || read == 0) break;
  }
  return done;
}

Result<size_t> FileIo::Parts::write_through_mds(uint64_t offset, BufferSlice source) {
  TRY(mds_writes.enter([this] { return patience.still_wanted("WRITE"); }));
  const auto written = send_writes(offset, source, true);
  mds_writes.leave();
  flush_unstable_early();
  return written;
}

Result<size_t> FileIo::Parts::send_writes(uint64_t offset, BufferSlice source, bool keep) {
  size_t done = 0;
  while (done < source.size()) {
    const size_t count = std::min(source.size() - done, mds.io_size_max());
    TRY_ASSIGN(const uint32_t written, send_write(offset + done, source.slice(done, count), keep));
    done += written;
  }
  return done;
}

Result<uint32_t> FileIo::Parts::send_write(uint64_t offset, BufferSlice source, bool keep) {
  UnstableCopy copy = keep ? mount.unstable_memory.copy(source.bytes()) : nullptr;
  const auto stable = copy || !keep ? nfs4::StableHow::kUnstable : nfs4::StableHow::kFileSync;
  if (!dirty.keeps_copies()) unstable_epoch = layouts.epoch.load();
  for (int tries = 1;; ++tries) {
    nfs4::Stateid stateid;
    bool open = false;
    const FileReference file = reference(true, &stateid, &open);
    if (!open) return fail(EBADF, "WRITE: not open for writing");
    const uint64_t holdings = cache.holdings();
    const auto answer = mds.write(file, stateid, offset, source.bytes(), stable);
    if (!answer) {
      if (is_lost_state(answer.error().status) && tries < kStateidTries) continue;
      return fail(answer.error().to_errno(), "WRITE through the MDS");
    }
    if (answer->count == 0) return fail(EIO, "WRITE through the MDS: nothing written");
    cache.learn_size(offset + answer->count, holdings);
    dirty.wrote_through_mds(offset, *answer, std::move(copy));
    ++written_by_mds;
    kept.forget(offset, answer->count);
    fabric.statistics.mds_writes.add();
    fabric.statistics.mds_write_bytes.add(answer->count);
    return answer->count;
  }
}

}  // namespace pnfsrdma::initiator
