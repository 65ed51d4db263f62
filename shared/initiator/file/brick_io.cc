// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/brick_io.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>

namespace pnfsrdma::initiator {

// One brick's part of an I/O: what goes out there with one doorbell, and what became of it.
struct BrickIo::Turn {
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

uint32_t BrickIo::post_pieces(const Io& io, LayoutPin& pin, BufferSlice slice) {
  uint32_t done = fill_holes(pin, slice, file_.fabric.statistics.hole_bytes);
  std::array<WorkItem, 2 * kPiecesMax> items;
  std::array<Turn, kPiecesMax> turns;
  std::span<WorkItem> room = items;
  size_t count = 0;
  // By address: SharedQueuePair::start() wants one order. Nearly always it is one device.
  for (Device* device = next_device(pin, nullptr); device != nullptr; device = next_device(pin, device)) {
    if (!prepare(turns[count], io, pin, slice, *device, room)) continue;
    room = room.subspan(turns[count++].items.size());
  }
  if (count == 0) return done;
  file_.fabric.statistics.rdma_round_trips.add();
  // What was complete before the flush was posted lies under these WRITEs; what completes meanwhile may not.
  const uint64_t noted = io.stability == Stability::kDataSync ? file_.dirty.noted() : 0;
  const SteadyTime deadline = file_.fabric.io_deadline();
  for (Turn& turn : std::span(turns).first(count)) start(turn, pin, deadline);
  for (Turn& turn : std::span(turns).first(count)) {
    turn.connection->queue_pair.finish(*turn.batch, deadline);
    done |= take_outcome(turn, io.direction, pin, slice, noted);
  }
  return done;
}

Device* BrickIo::next_device(const LayoutPin& pin, const Device* behind) {
  Device* next = nullptr;
  for (const LayoutSegment& piece : pin.pieces()) {
    if (piece.hole() || !std::less<>()(behind, piece.device)) continue;
    if (next == nullptr || std::less<>()(piece.device, next)) next = piece.device;
  }
  return next;
}

// False: nothing to be posted there.
bool BrickIo::prepare(Turn& turn, const Io& io, const LayoutPin& pin, BufferSlice slice, Device& device,
                      std::span<WorkItem> room) {
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
    if (lookup == Connection::Lookup::kDead) file_.cache.drop_grant(target.grant);
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
size_t BrickIo::flush_items(const Turn& turn, std::span<WorkItem> room) {
  const size_t most = turn.connection->queue_pair.items_max();
  switch (turn.connection->flush) {
    case FlushMethod::kNative:
      if (2 * turn.pieces > most) return 0;
      for (size_t i = 0; i < turn.pieces; ++i) {
        room[turn.pieces + i] = WorkItem{.opcode = rdma::Opcode::kFlush, .remote = room[i].remote};
      }
      file_.fabric.statistics.flushes_native.add();
      return turn.pieces;
    case FlushMethod::kCommitMessage:
      if (turn.pieces + 1 > most) return 0;
      file_.fabric.statistics.flushes_commit_message.add();
      return 1;
    case FlushMethod::kLayoutCommit:
      break;
  }
  return 0;
}

void BrickIo::start(Turn& turn, const LayoutPin& pin, SteadyTime deadline) {
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
uint32_t BrickIo::take_outcome(Turn& turn, Direction direction, LayoutPin& pin, BufferSlice slice,
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
      file_.dirty.posted(
          {piece.device, hello.connection, pin.lineage, pin.layout, {piece.offset, piece.length}});
    }
    if (outcome == rdma::Outcome::kRemoteAccess) {
      file_.cache.drop_grant(for_write ? piece.write.grant : piece.read.grant);
    }
  }
  if (turn.outdated) pin.pieces()[turn.piece_of[0]].device->lost(turn.connection);
  return done;
}

void BrickIo::note_written(const LayoutSegment& piece, BufferSlice source, const LayoutPin& pin,
                           const BrickVerifier& verifier, std::optional<uint64_t> flushed_behind) {
  const uint64_t known = std::clamp(pin.known_size, piece.offset, piece.end()) - piece.offset;
  const uint64_t commits = file_.dirty.commits();
  // Kept before it is known: what a commit tells can be restored.
  const auto keep = [&] { file_.kept.keep(piece.offset + known, source.bytes().subspan(known)); };
  if (known < piece.length) keep();
  if (known > 0) file_.kept.forget(piece.offset, known);
  if (file_.dirty.wrote(piece, pin.known_size, pin.lineage, verifier, file_.fabric.clock.wall_now(),
                        flushed_behind))
    flusher_.flush_beside();
  // A commit between has forgotten the copy, perhaps.
  if (known < piece.length && file_.dirty.commits() != commits) keep();
}

void BrickIo::count_bytes(Direction direction, uint64_t bytes) {
  Statistics& counters = file_.fabric.statistics;
  (direction == Direction::kRead ? counters.rdma_read_bytes : counters.rdma_write_bytes).add(bytes);
  (direction == Direction::kRead ? counters.rdma_reads : counters.rdma_writes).add();
}

}  // namespace pnfsrdma::initiator
