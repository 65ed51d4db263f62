// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/brick_io.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>

namespace pnfsrdma::initiator {

bool BrickTurn::flushed() const {
  if (chain != nullptr) return in_chain.flushed;
  if (!flushes()) return false;
  const std::optional<brick::PersistReply> reply = batch->reply();
  if (reply)
    return reply->status == brick::PersistStatus::kOk && reply->verifier == connection->hello.verifier;
  // A native one fails under another verifier; a SEND has done nothing without its answer.
  return std::all_of(items.begin() + static_cast<ptrdiff_t>(pieces), items.end(), [](const WorkItem& item) {
    return item.opcode == rdma::Opcode::kFlush && item.outcome == rdma::Outcome::kSuccess;
  });
}

size_t BrickWork::ends() const {
  const auto turns_used = std::span(turns).first(count);
  return count + static_cast<size_t>(std::ranges::count_if(
                     turns_used, [](const BrickTurn& turn) { return turn.chain != nullptr; }));
}

void BrickWork::clear() {
  for (BrickTurn& turn : used()) {
    turn.batch.reset();
    turn.connection.reset();
  }
  count = 0;
}

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

// A write of more takes its flush along by itself: it would keep all that share one waiting.
constexpr size_t kChainedMax = size_t{1} << 20;

// What the WRITEs of a turn write, and how many.
size_t flush_ranges(const BrickTurn& turn, const LayoutPin& pin, std::span<const WorkItem> writes,
                    std::span<FlushRange> ranges) {
  for (size_t i = 0; i < turn.pieces; ++i) {
    const LayoutSegment& piece = pin.pieces()[turn.piece_of[i]];
    ranges[i] = {{piece.write.grant, piece.skip, piece.length}, writes[i].remote};
  }
  return turn.pieces;
}

// What the commit message behind the WRITEs covers.
brick::PersistCall flush_call(const BrickTurn& turn, const LayoutPin& pin) {
  brick::PersistCall call;
  for (size_t i = 0; i < turn.pieces; ++i) {
    const LayoutSegment& piece = pin.pieces()[turn.piece_of[i]];
    call.ranges.push_back({piece.write.grant, piece.skip, piece.length});
  }
  return call;
}

}  // namespace

uint32_t BrickIo::post_pieces(const Io& io, LayoutPin& pin, BufferSlice slice) {
  uint32_t done = fill_holes(pin, slice, file_.fabric.statistics.hole_bytes);
  BrickWork work;
  prepare(work, io, pin, slice, true);
  if (work.count == 0) return done;
  begin(work, io);
  const SteadyTime deadline = file_.fabric.io_deadline();
  for (BrickTurn& turn : work.used()) start(turn, pin, deadline);
  for (BrickTurn& turn : work.used()) {
    turn.connection->queue_pair.finish(*turn.batch, deadline);
    done |= take_outcome(turn, io.direction, pin, slice, work.noted);
  }
  return done;
}

bool BrickIo::try_prepare(BrickWork& work, const Io& io, const LayoutPin& pin, BufferSlice slice,
                          BatchOwner& owner) {
  prepare(work, io, pin, slice, false);
  size_t missing = pin.pieces().size();
  for (const LayoutSegment& piece : pin.pieces()) missing -= piece.hole() ? 1 : 0;
  for (const BrickTurn& turn : work.used()) missing -= turn.pieces;
  work.lacks_room = missing == 0 && !reserve(work, pin, owner);
  if (missing == 0 && !work.lacks_room) return true;
  work.clear();
  return false;
}

// On all queue pairs or on none.
bool BrickIo::reserve(BrickWork& work, const LayoutPin& pin, BatchOwner& owner) {
  for (size_t i = 0; i < work.count; ++i) {
    BrickTurn& turn = work.turns[i];
    file_.fabric.completions.add(turn.connection);
    turn.batch.emplace(turn.items);
    turn.in_chain = {.owner = &owner, .batch = &*turn.batch};
    SharedQueuePair& queue_pair = turn.connection->queue_pair;
    if (turn.sends_message() ? queue_pair.try_reserve(*turn.batch, owner, flush_call(turn, pin))
                             : queue_pair.try_reserve(*turn.batch, owner))
      continue;
    for (BrickTurn& reserved : work.used().first(i)) reserved.connection->queue_pair.cancel(*reserved.batch);
    return false;
  }
  return true;
}

uint32_t BrickIo::post(BrickWork& work, const Io& io, const LayoutPin& pin, BufferSlice slice) {
  const uint32_t holes = fill_holes(pin, slice, file_.fabric.statistics.hole_bytes);
  if (work.count == 0) return holes;
  begin(work, io);
  const SteadyTime deadline = file_.fabric.io_deadline();
  for (BrickTurn& turn : work.used()) {
    turn.connection->queue_pair.start_reserved(*turn.batch, deadline, io.doorbell);
    if (turn.chain == nullptr) continue;
    std::array<FlushRange, kPiecesMax> ranges;
    turn.chain->add(turn.in_chain, std::span(ranges).first(flush_ranges(turn, pin, turn.items, ranges)));
  }
  return holes;
}

uint32_t BrickIo::take_outcomes(BrickWork& work, const Io& io, LayoutPin& pin, BufferSlice slice) {
  uint32_t done = 0;
  for (BrickTurn& turn : work.used()) done |= take_outcome(turn, io.direction, pin, slice, work.noted);
  work.clear();
  return done;
}

void BrickIo::prepare(BrickWork& work, const Io& io, const LayoutPin& pin, BufferSlice slice,
                      bool connecting) {
  std::span<WorkItem> room = work.items;
  work.count = 0;
  // By address: SharedQueuePair::start() wants one order. Nearly always it is one device.
  for (Device* device = next_device(pin, nullptr); device != nullptr; device = next_device(pin, device)) {
    BrickTurn& turn = work.turns[work.count];
    turn.connection = connecting ? device->connect().value_or(nullptr) : device->live();
    if (!turn.connection) continue;
    if (!prepare(turn, io, pin, slice, *device, room)) {
      turn.connection.reset();
      continue;
    }
    room = room.subspan(turn.items.size());
    ++work.count;
  }
}

// The I/O goes out now.
void BrickIo::begin(BrickWork& work, const Io& io) {
  Statistics& counters = file_.fabric.statistics;
  counters.rdma_round_trips.add();
  for (const BrickTurn& turn : work.used()) {
    if (turn.flushes_itself())
      (turn.sends_message() ? counters.flushes_commit_message : counters.flushes_native).add();
  }
  // What was complete before the flush was posted lies under these WRITEs; what completes meanwhile may not.
  work.noted = io.stability == Stability::kDataSync ? file_.dirty.noted() : 0;
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
bool BrickIo::prepare(BrickTurn& turn, const Io& io, const LayoutPin& pin, BufferSlice slice, Device& device,
                      std::span<WorkItem> room) {
  const Connection& connection = *turn.connection;
  turn.pieces = 0;
  turn.outdated = false;
  turn.chain = nullptr;
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
    if (turn.outdated) device.lost(turn.connection);
    return false;
  }
  turn.items = room.first(turn.pieces);
  if (io.stability != Stability::kDataSync) return true;
  turn.chain = slice.size() <= kChainedMax ? find_chain(turn, io, pin) : nullptr;
  const size_t flushes = turn.chain == nullptr ? flush_items(turn, room) : 0;
  turn.items = room.first(turn.pieces + flushes);
  return true;
}

FlushChain* BrickIo::find_chain(const BrickTurn& turn, const Io& io, const LayoutPin& pin) {
  if (io.chains == nullptr) return nullptr;
  std::array<FlushRange, kPiecesMax> ranges;
  return io.chains->find(turn.connection,
                         std::span(ranges).first(flush_ranges(turn, pin, turn.items, ranges)));
}

// Puts behind the WRITEs what flushes them. Returns how many items; none where it cannot be done in one batch:
// fdatasync does it then.
size_t BrickIo::flush_items(const BrickTurn& turn, std::span<WorkItem> room) {
  const size_t most = turn.connection->queue_pair.items_max();
  switch (turn.connection->flush) {
    case FlushMethod::kNative:
      if (2 * turn.pieces > most) return 0;
      for (size_t i = 0; i < turn.pieces; ++i) {
        room[turn.pieces + i] = WorkItem{.opcode = rdma::Opcode::kFlush, .remote = room[i].remote};
      }
      return turn.pieces;
    case FlushMethod::kCommitMessage:
      if (turn.pieces + 1 > most) return 0;
      return 1;
    case FlushMethod::kLayoutCommit:
      break;
  }
  return 0;
}

void BrickIo::start(BrickTurn& turn, const LayoutPin& pin, SteadyTime deadline) {
  turn.batch.emplace(turn.items);
  SharedQueuePair& queue_pair = turn.connection->queue_pair;
  if (turn.sends_message()) {
    queue_pair.start(*turn.batch, flush_call(turn, pin), deadline);
  } else {
    queue_pair.start(*turn.batch, deadline);
  }
}

// A bit for each piece that is done.
uint32_t BrickIo::take_outcome(BrickTurn& turn, Direction direction, LayoutPin& pin, BufferSlice slice,
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
          {piece.device, hello.connection, pin.layout_incarnation, pin.layout, {piece.offset, piece.length}});
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
  if (file_.dirty.wrote(piece, pin.known_size, pin.layout_incarnation, verifier,
                        file_.fabric.clock.wall_now(), flushed_behind))
    flusher_.flush_beside();
  // A commit between has forgotten the copy, perhaps.
  if (known < piece.length && file_.dirty.commits() != commits) keep();
}

void BrickIo::count_bytes(Direction direction, uint64_t bytes) {
  Statistics& counters = file_.fabric.statistics;
  (direction == Direction::kRead ? counters.rdma_read_bytes : counters.rdma_write_bytes).add(bytes);
  (direction == Direction::kRead ? counters.rdma_reads : counters.rdma_writes).add();
  file_.activity.add(direction, bytes);
}

}  // namespace pnfsrdma::initiator
